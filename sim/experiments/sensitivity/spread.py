"""Ratio of systems to a baseline while uncertain constants change, together and one at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from host.systems import HostTuning, named_of
from host.toml.provenance import constants
from sim.evaluation.compared import formed_best
from sim.evaluation.fields import Workload, devices_of
from sim.evaluation.nic import NicPart
from sim.evaluation.nic_options import serving
from sim.evaluation.point import Point, Task, in_words
from sim.evaluation.site import Site
from sim.evaluation.store import Store
from sim.experiments.sensitivity.draws import drawn
from sim.job.row_places import BarError

__all__ = ["DRAWS", "Drawn", "Spread", "nic_constants", "scaled_by"]

DRAWS = 40
"""Joint draws."""

_ALONE = frozenset(vars(HostTuning()))
"""Options that change no NIC."""


def scaled_by(point: Point, factors: Sequence[tuple[str, float]]) -> Point:
    """Return ``point`` with constants multiplied by factors."""
    return point.changed(scaled=(*point.cluster.scaled, *factors))


def nic_constants(point: Point) -> dict[str, float]:
    """Return every constant that a point's NICs see, by name: constants of the GPU that serves
    them, of PCIe and of the network. The time of a short PCIe write is part of the poll time."""
    seen_point, nics, devices = point.kind.as_seen(point, devices_of(point.cluster))
    seen = {"gpu": serving(seen_point, nics, devices)[0], "pcie": devices.pcie,
            "network": devices.network}
    return {f"{name}.{constant.name}": float(constant.value)
            for name, profile in seen.items() for constant in constants(profile)
            if constant.name != "write_us"}


@dataclass(frozen=True)
class Drawn:
    """A system whose placement, NICs, and options of NICs stay while constants change.

    Members: ``point``, with the placement and the options of its NICs; ``nic``, its NICs or None.
    """

    point: Point
    nic: NicPart | None

    @classmethod
    def of(cls, point: Point, runs: Store | None, memory: int | None = None,
           name: str = "") -> Self | None:
        """Return the system ``name`` at its point, None if it cannot be built there, or if its
        fixed options let NICs read rows that they do not see. ``memory``: bytes of a GPU, None for
        no limit."""
        try:
            own = formed_best(name, point, memory, runs)
        except BarError:
            return None
        if own.built is None or own.why:
            return None
        point, built, nic = own.point, own.built, own.nic
        if point.kind.chooses_nics:
            fixed = dict.fromkeys(point.system.fixed) | dict.fromkeys(
                text for text in named_of(built.tuning) if text.partition("=")[0] not in _ALONE)
            point = point.changed(fixed=tuple(fixed))
        return cls(point, nic)

    def interval_us(self, factors: Sequence[tuple[str, float]] = ()) -> float:
        """Return the time per mini-batch with the best flights and options of the host."""
        point = scaled_by(self.point, factors)
        return point.kind.search(Site.of(point), self.nic).best().interval_us

    def held(self, widths: Sequence[tuple[str, float]]) -> list[str]:
        """Return the constants whose effect on the NICs' own times is left out."""
        if self.nic is None:
            return []
        nominal = nic_constants(self.point)
        return [name for name, width in widths if any(
            nic_constants(scaled_by(self.point, [(name, factor)])) != nominal
            for factor in (1 / width, width))]


@dataclass(frozen=True)
class Spread(Task):
    """How many times as fast as a baseline systems are, over uncertain constants.

    Members
    -------
    base: point of the baseline, at nominal constants. others: name and point of each system.
    widths: ``profile.constant`` and width of each constant.
    draws: joint draws. seed: seed of the draws. memory: bytes of a GPU, None for no limit.
    """

    base: Point
    others: tuple[tuple[str, Point], ...]
    widths: tuple[tuple[str, float], ...]
    draws: int = DRAWS
    seed: int = 1
    memory: int | None = None

    @property
    def workload(self) -> Workload:
        """Workload of the points."""
        return self.base.workload

    @property
    def effort(self) -> float:
        """Work, in values of vectors that NICs look up, about; independent of their number."""
        return 5e5 * (self.draws + 2 * len(self.widths))

    def in_words(self) -> str:
        """Return a description."""
        return f"{self.draws} draws of constants, {in_words(self.base)}"

    def measured(self, runs: Store | None) -> dict:
        """Return the ratios of each system that can be built, by name.

        Returns
        -------
        ``nominal``: ratio without a change; ``draws``: ratio of each joint draw; ``ends``: for each
        constant, the ratios at its least and largest value; ``held``: constants whose effect on the
        NICs' own times is left out; each by system. ``source`` and ``notes``.
        """
        base = Drawn.of(self.base, runs, self.memory)
        systems = {} if base is None else {
            name: found for name, point in self.others
            if (found := Drawn.of(point, runs, self.memory, name)) is not None}

        def ratios(factors: Sequence[tuple[str, float]]) -> dict[str, float]:
            if base is None:
                return {}
            us = base.interval_us(factors)
            return {name: us / each.interval_us(factors) for name, each in systems.items()}

        names = [name for name, _ in self.widths]
        every = [ratios(list(zip(names, map(float, row))))
                 for row in drawn(self.widths, self.draws, self.seed)]
        ends = {name: [ratios([(name, factor)]) for factor in (1 / width, width)]
                for name, width in self.widths}
        return {
            "nominal": ratios(()),
            "draws": {name: [each[name] for each in every] for name in systems},
            "ends": {name: {constant: [each[name] for each in both]
                            for constant, both in ends.items()} for name in systems},
            "held": {name: each.held(self.widths) for name, each in systems.items()},
            "source": "", "notes": []}
