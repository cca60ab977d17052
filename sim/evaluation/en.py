"""EN at a point."""

from dataclasses import replace
from typing import ClassVar

from gen.base.settings import setting_name
from host.systems import (
    POOLS,
    Devices,
    EnTuning,
    HostTuning,
    en_variants,
    fixed_of,
    open_variants,
    start_of,
    wires_to,
)
from sim.evaluation.built import Built, Choice
from sim.evaluation.en_nics import check_jumbo, nic_devices, nic_point
from sim.evaluation.en_search import EnSearch
from sim.evaluation.fields import Fields, NicOptions, Options
from sim.evaluation.nic import NicPart
from sim.evaluation.nic_options import Nics
from sim.evaluation.site import Site
from sim.evaluation.system import Evaluated, System

__all__ = ["EmberNic"]

_SEARCHED = ("row_reads", "gpu_rings")
"""Settings that options of EN choose."""


class EmberNic(System):
    """EmberNIC with its options beyond the paper, see :func:`host.systems.en.en`."""

    options: ClassVar[type[Options]] = NicOptions
    tuning: ClassVar[type[HostTuning] | None] = EnTuning
    in_rtl: ClassVar[bool] = True
    chooses_nics: ClassVar[bool] = True
    program_settings: ClassVar[tuple[str, ...]] = (
        "requester_merge=true", "deliver=unique", "completions=true")

    def check(self, point: Fields) -> None:
        """Raise ``ValueError`` for conflicting options."""
        for name in map(setting_name, point.system.settings):
            if name in _SEARCHED:
                raise ValueError(f"{name} must be left out for {self.name}, which chooses how NICs "
                                 f"read rows: fix its options ring and reads")
        wire = fixed_of(EnTuning, point.system.fixed).get("wire", "float32")
        if wire != "float32" and point.cluster.gpus_per_nic > 1:
            raise ValueError(f"wire must be float32 for {self.name} where NICs serve several "
                             f"GPUs, not {wire!r}")
        check_jumbo(point, EnTuning)
        _consistent(point)

    def wires(self, point: Fields) -> tuple[str, ...]:
        """Return the formats of vectors that the NICs of a point may carry: two nodes at least
        exchange vectors."""
        if "wire" in (fixed := fixed_of(EnTuning, point.system.fixed)):
            return (fixed["wire"],)
        wires = wires_to("float32" if point.cluster.endpoints == 1 else point.cluster.wire)
        return tuple(wire for wire in wires if _allows(point, wire))

    def apart(self, point: Evaluated) -> list[Evaluated]:
        """Return the point with each format of vectors."""
        wires = self.wires(point)
        return [point] if len(wires) == 1 else [_with_wire(point, wire) for wire in wires]

    def why_not_placed(self, site: Site) -> str | None:
        """Return the reason if the system cannot be built with the site's placement, such as rows
        that its NICs must read and do not see; None if it can."""
        if why := self.why_not(site):
            return why
        fixed = fixed_of(EnTuning, site.point.system.fixed)
        narrow = fixed.get("wire", "float32") != "float32"
        if fixed.get("reads") or narrow or site.trace.model.weighted_tables:
            search = self.search(site, None)
            try:
                option = search.options()[0]
                if narrow and not search.fits(option):
                    return "wire must be float32: " + (
                        "NICs sum gradients of tables that pool at the requester"
                        if site.training else "the slots of a share do not fit unique delivery")
                return search.why_not_weighted(option)
            except ValueError as error:
                return str(error)
        return None

    def search(self, site: Site, nic: NicPart | None, all_reduce: bool = True) -> "EnSearch":
        """Return the search; ``nic``: NICs for every option, None to run the NICs of each option.
        """
        return EnSearch(site, all_reduce, nic)

    def at(self, site: Site, all_reduce: bool = True,
           near: Built | None = None) -> tuple[Built, NicPart]:
        """Return EN with the options, and the mini-batches in flight, of the shortest interval.

        The search runs NICs in fidelity ``model``, and only for options whose lower bound is below
        the best interval so far. The NICs of the chosen options then run in the point's fidelity.
        """
        modelled = replace(site, point=site.point.changed(fidelity="model"))
        first, *others = [replace(modelled, point=each) for each in self.apart(modelled.point)]
        found = [EnSearch(each, all_reduce, start=near and near.tuning).best() for each in (
            first, *(each for each in others if self.why_not_placed(each) is None))]
        chosen = min(found, key=lambda each: round(each.interval_us, 6)).tuning
        nic = self.search(site, None, all_reduce).nic(chosen)
        built = self.search(site, nic, all_reduce).whole(Choice(site.point.flights, chosen))
        return built, nic

    def without_all_reduce(self, site: Site, nic: NicPart | None) -> Built:
        """Return EN without the all-reduce of the MLPs' gradients."""
        return self.at(site, all_reduce=False)[0]

    def as_seen(self, point: Fields, devices: Devices) -> tuple[Fields, Nics, Devices]:
        """Return a point of the paper's systems with the same NICs; an open option is on."""
        own = _tuning(point)
        return *nic_point(point, devices, own), nic_devices(devices, own)


def _tuning(point: Fields) -> EnTuning:
    """Return the point's options; an open option is on, except a resident kernel where bags pool
    at their owner."""
    fixed = fixed_of(EnTuning, point.system.fixed)
    return EnTuning(**{"ring": fixed.get("pool", POOLS[0]) == POOLS[0]} | fixed)


def _with_wire(point: Evaluated, wire: str) -> Evaluated:
    return point.changed(fixed=(*point.system.fixed, f"wire={wire}"))


def _allows(point: Fields, wire: str) -> bool:
    """Return whether a point allows a format of vectors between nodes."""
    try:
        _with_wire(point, wire)
    except ValueError:
        return False
    return True


def _consistent(point: Fields) -> EnTuning:
    """Return options that a point leaves open; ``ValueError`` if there are none."""
    training, own = point.workload.training, _tuning(point)
    fixed = fixed_of(EnTuning, point.system.fixed)
    return start_of(own, open_variants(en_variants(training, pools=POOLS), fixed), training)
