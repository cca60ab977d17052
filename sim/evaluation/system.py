"""What a system of the evaluation is: its name, its parts, its options and what it builds.

To add a system, write a class here or in a file of its own, or only an object of a class, and add
it to the registry, :data:`sim.evaluation.systems.REGISTRY`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from host.systems import Devices, NicTimes
from sim.evaluation.fields import Fields, NicOptions, Options
from sim.evaluation.gradient_path import with_updates
from sim.evaluation.nic import NicPart, Nics, nic_part
from sim.evaluation.search import Built, Search, Site

__all__ = ["PARTS", "Evaluated", "System"]

Evaluated = TypeVar("Evaluated", bound=Fields)
"""A point, whose class a changed point keeps."""

PARTS = ("lc", "rc", "sc")
"""What a SmartNIC does besides transport: local cache, remote cache, SmartNIC computation."""


@dataclass(frozen=True)
class System(ABC):
    """A system.

    Members
    -------
    name: canonical name. label: name for people.
    parts: of `PARTS`; a remote cache is left out in training, since its rows go stale (paper,
        section 4.2).
    graph: whether the graph algorithm forms its mini-batches unless a point says otherwise.
    settings: ``field=value`` of its NICs.
    options: class of a point's options of it. in_rtl: whether RTL of its NICs can run.
    chooses_nics: whether its NICs depend on options that it chooses.
    in_graphs: whether several mini-batches may be in a graph. least_nodes: of its cluster.
    program_settings: of its NICs where they serve a PyTorch program, which does the interaction.
    """

    name: str
    label: str
    parts: frozenset[str] = frozenset()
    graph: bool = False
    settings: tuple[str, ...] = ()

    options: ClassVar[type[Options]] = Options
    in_rtl: ClassVar[bool] = False
    chooses_nics: ClassVar[bool] = False
    in_graphs: ClassVar[bool] = True
    least_nodes: ClassVar[int] = 1
    program_settings: ClassVar[tuple[str, ...]] = ()

    @property
    def has_nics(self) -> bool:
        """Whether it has NICs."""
        return issubclass(self.options, NicOptions)

    def parts_in(self, workload: str) -> frozenset[str]:
        """Return the parts that it has in a workload."""
        return self.parts - {"rc"} if workload == "training" else self.parts

    def check(self, point: Fields) -> None:  # noqa: B027 - most systems have nothing to check
        """Raise ``ValueError`` for options of a point that do not go together."""

    def why_not(self, site: Site) -> str | None:
        """Return why the system cannot be built, None where it can."""
        return None

    def without_interaction(self) -> dict[str, Any]:
        """Return the system and its options at which the GPUs do the interaction."""
        return {"system": self.name}

    def nics(self, point: Fields) -> Nics:
        """Return what the NICs of a point are."""
        return Nics(self.parts_in(point.workload.workload), settings=self.settings)

    @abstractmethod
    def search(self, site: Site, nic: NicPart | None, all_reduce: bool = True) -> Search:
        """Return the search for the best options, with given NICs, None for a system without."""

    def run_nics(self, site: Site) -> NicPart | None:
        """Run the NICs of a point, or take their runs from the store of the site; None for a
        system without."""
        if not self.has_nics:
            return None
        return nic_part(site.point, self.nics(site.point), site.trace, site.devices, site.runs)

    def at(self, site: Site, all_reduce: bool = True) -> tuple[Built, NicPart | None]:
        """Return a point's system with its best options, and its NICs, None for a system without;
        in training with the gradient path."""
        nic = self._updating(site, self.run_nics(site))
        return self.search(site, nic, all_reduce).best(), nic

    def without_all_reduce(self, site: Site, nic: NicPart | None) -> Built:
        """Return the system without the sum of the MLPs' gradients over the nodes; ``nic``: what
        :meth:`at` gave."""
        return self.search(site, nic, all_reduce=False).best()

    def timed(self, site: Site, nic: NicPart | None, times: list[NicTimes] | None = None,
              near: Any = None) -> Built:
        """Return the system with given NICs, or with ``times`` in place of theirs; ``near``: where
        the search of its options begins."""
        if nic is not None and times is not None:
            nic = replace(nic, times=times)
        return self.search(site, self._updating(site, nic)).best(near)

    def as_seen(self, point: Fields, devices: Devices) -> tuple[Fields, Nics, Devices]:
        """Return a point, NICs and devices as a run of the point's NICs sees them."""
        return point, self.nics(point), devices

    def served_ways(self, point: Evaluated) -> list[Evaluated]:
        """Return a point in each way in which its NICs may get rows."""
        return [point]

    def settled(self, point: Evaluated, built: Built) -> Evaluated:
        """Return a point with the options that ``built`` has, as far as a point has them."""
        return point.changed(in_flight=built.in_flight, per_graph=built.per_graph)

    def _updating(self, site: Site, nic: NicPart | None) -> NicPart | None:
        if nic is None or not site.training:
            return nic
        return with_updates(site.point, self.nics(site.point), site.trace, site.devices, site.work,
                            nic)
