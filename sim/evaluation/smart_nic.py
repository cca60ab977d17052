"""Systems with the paper's SmartNICs, and the search for their fastest options."""

from dataclasses import replace
from math import ceil
from typing import Any, ClassVar

from gen.base.settings import overridden
from host.systems import (
    BAG_PACES,
    PACES,
    POOLS,
    THREADS,
    UPDATES,
    EnTuning,
    HostTuning,
    NicTimes,
    NicTuning,
    Step,
    Variants,
    fixed_of,
    host_variants,
    smartnic,
)
from host.timing.network import MTUS
from sim.evaluation.built import Built
from sim.evaluation.en_nics import JUMBO, check_jumbo
from sim.evaluation.fields import Fields, Options, SmartNicOptions
from sim.evaluation.least import deliveries, least_times, link_bounds, with_phases
from sim.evaluation.nic import NicPart, busy_times
from sim.evaluation.pooling import owner_tables, pooled_in_words, why_not_weighted
from sim.evaluation.search import GAIN, Search, sums
from sim.evaluation.site import Site
from sim.evaluation.system import PARTS, System

__all__ = ["SmartNic", "times_of"]

_WORSE = 2
"""Paces in a row, from the shortest on, that are no faster: the search then ends."""


class SmartNic(System):
    """GPUs with the paper's SmartNICs, with a subset of `PARTS`."""

    options: ClassVar[type[Options]] = SmartNicOptions
    tuning: ClassVar[type[HostTuning] | None] = NicTuning
    in_rtl: ClassVar[bool] = True
    program_settings: ClassVar[tuple[str, ...]] = ("requester_merge=false",)

    def check(self, point: Fields) -> None:
        """Raise ``ValueError`` for options that the workload excludes."""
        super().check(point)
        pool = fixed_of(NicTuning, point.system.fixed).get("pool", POOLS[0])
        if point.workload.training and pool != POOLS[0] and not _may_pool(point):
            raise ValueError(f"pool must be {POOLS[0]} in training without sc, not {pool!r}: NICs "
                             f"that do not reduce gradients do not carry them to the owner's GPU "
                             f"with their keys")
        check_jumbo(point, NicTuning)

    def why_not(self, site: Site) -> str | None:
        """Return the reason if the system cannot be built, such as weights of keys whose bags do
        not pool at their owner; None if it can."""
        found = super().why_not(site)
        if found or not site.trace.model.weighted_tables:
            return found
        reasons = [why_not_weighted(site.nic_trace, each.point.system.owner_tables)
                   for each in _choices(site)]
        return None if None in reasons else reasons[0]

    def without_interaction(self) -> dict[str, Any]:
        """Return the system whose NICs pool."""
        left = "+".join(part for part in PARTS if part in self.parts - {"sc"})
        return {"system": left or "nic"}

    def search(self, site: Site, nic: NicPart | None, all_reduce: bool = True) -> Search:
        """Return the search over the options of every system and the ways to sum the MLPs'
        gradients."""
        return _SmartNics(site, all_reduce, times_of(nic))

    def at(self, site: Site, all_reduce: bool = True,
           near: Built | None = None) -> tuple[Built, NicPart | None]:
        """Return the system with its best options and NICs.

        The tables pool at the requester, or each where the traffic is less. In training, the GPUs
        or the NICs of the owners update the latter. In inference, NICs run alone only if they may
        be faster, and the driver may wait between launches: fewer gathers leave more of the GPU to
        other kernels, up to some pace. In fidelity rtl, the driver has the pace of the point. Pace,
        packets and the places of pooling and updates are those of ``near``, if it is given.
        """
        choices = _choices(site)
        if near is not None:
            choices = [each for each in choices
                       if _chosen(each).items() <= vars(near.tuning).items()] or choices
        first, *others = choices
        pace = None if near is None else getattr(near.tuning, "pace_us", 0)
        found = self._paced(first, all_reduce, pace)
        for own in others:
            if site.training or self._may_reach(own, found[0].interval_us, all_reduce):
                found = min(found, self._paced(own, all_reduce, pace),
                            key=lambda each: each[0].interval_us)
        return found

    def reaches(self, site: Site, us: float) -> bool:
        """Return False if the interval is at least ``us`` without any use of driver and GPU by
        gathers."""
        return site.training or any(self._may_reach(own, us) for own in _choices(site))

    def _may_reach(self, site: Site, us: float, all_reduce: bool = True) -> bool:
        """Return whether the interval is below ``us`` without any use of driver and GPU by gathers,
        and with a lower bound of the latencies."""
        return _least_us(site) < us and self._interval_us(
            site, _without_gathers(self._least(site)), all_reduce) < us

    def _paced(self, site: Site, all_reduce: bool,
               us: int | None) -> tuple[Built, NicPart | None]:
        """Return the system with the pace ``us`` of launches, or else with its best."""
        own = site.point.system
        us = fixed_of(NicTuning, own.fixed).get("pace_us", us)
        if us is not None:
            return super().at(_with_pace(site, us), all_reduce)
        built, nic = super().at(site, all_reduce)
        if site.training or own.persistent_gather or own.fidelity != "model" or nic is None:
            return built, nic
        free = self._interval_us(site, _without_gathers(nic.times), all_reduce)
        if free * GAIN >= built.interval_us:
            return built, nic
        call = max(site.devices.software.launch_call_us, own.pace_us)
        paces = (*PACES, *BAG_PACES) if own.owner_tables else PACES
        worse = 0
        for pace in (each for each in paces if each > call):
            slower, worse = _with_pace(site, pace), worse + 1
            if self._interval_us(slower, self._least(slower), all_reduce) < built.interval_us:
                found, paced = super().at(slower, all_reduce)
                if found.interval_us < built.interval_us:
                    worse, built, nic = 0, found, paced
            if worse == _WORSE:
                break
        return built, nic

    def _interval_us(self, site: Site, times: list[NicTimes], all_reduce: bool = True) -> float:
        """Return the interval with the best options of the host and given times of NICs."""
        return _SmartNics(site, all_reduce, times).best().interval_us

    def _least(self, site: Site) -> list[NicTimes]:
        """Return the times of NICs with a lower bound of the latencies."""
        return with_phases(busy_times(site.point, self.nics(site.point), site.nic_trace,
                                      site.devices, site.runs), _least_times(site))


def _with_pace(site: Site, us: float) -> Site:
    """Return a site whose driver waits at least ``us`` between launches."""
    return replace(site, point=site.point.changed(pace_us=max(us, site.point.system.pace_us)))


def _chosen(site: Site) -> dict[str, Any]:
    """Return the options that the NICs of a site have."""
    own = site.point.system
    pool = fixed_of(NicTuning, own.fixed).get("pool", "auto" if own.owner_tables else POOLS[0])
    return {"pool": pool, "update": own.update, "jumbo": set(JUMBO) <= set(own.settings)}


def _without_gathers(times: list[NicTimes]) -> list[NicTimes]:
    """Return the times of NICs whose gathers need neither driver nor GPU."""
    return [replace(each, launches=0.0, gathers=0.0, gathered=0.0, pooled_launches=0.0)
            for each in times]


def _choices(site: Site) -> list[Site]:
    """Return a site with each set of tables that may pool at their owner, the one with the least
    traffic first, with each place that updates them, and with each size of packets."""
    point, fixed = site.point, fixed_of(NicTuning, site.point.system.fixed)
    if site.training and not _may_pool(point):
        return [site]
    pool, jumbo, update = (fixed.get(name) for name in ("pool", "jumbo", "update"))
    updates = (update,) if update else UPDATES[:1 + site.training]
    pools = (pool,) if pool else ("auto", POOLS[0])[:1 + (UPDATES[0] in updates)]
    if point.system.owner_tables:
        places = [(point.system.owner_tables, point.system.update)]
    else:
        places = [*dict.fromkeys(
            (owner, each if owner else UPDATES[0]) for of in pools for each in updates
            for owner in [owner_tables(point, site.nic_trace, of, update=each)])]
    places = [each for each in places
              if why_not_weighted(site.nic_trace, each[0]) is None] or places
    jumbos = (False, True)[:1 + (point.cluster.mtu > MTUS[0] and not site.training)
                           ] if jumbo is None else (jumbo,)
    return [replace(site, point=point.changed(
        owner_tables=owner, update=each, settings=overridden(JUMBO * jumbo, point.system.settings)))
        for owner, each in places for jumbo in jumbos]


def _may_pool(point: Fields) -> bool:
    """Return whether bags may pool at their owner in training: NICs reduce gradients."""
    return "sc" in point.kind.parts


def _least_us(site: Site) -> float:
    """Return a lower bound of the interval of NICs that deliver pooled vectors."""
    return min(each.interval_us for each in _least_times(site))


def _least_times(site: Site) -> list[NicTimes]:
    """Return a lower bound of the times of NICs that deliver pooled vectors."""
    point, trace, owner = site.point, site.trace, site.point.system.owner_tables
    share = ceil(trace.mini_batch / point.cluster.endpoints)
    tuning = EnTuning(deliver="interaction" if "sc" in point.kind.parts else "pooled")
    return [least_times(trace.model, tuning, of, share, us)
            for of, us in zip(deliveries(point, trace, 0, owner), link_bounds(site, owner))]


class _SmartNics(Search):
    """Search of a system with the paper's SmartNICs, whose ``times`` are given."""

    kind = NicTuning

    def __init__(self, site: Site, all_reduce: bool, times: list[NicTimes]):
        super().__init__(site, all_reduce)
        self._times = times
        self._parts = site.point.kind.parts_in(site.point.workload.workload)

    def all_variants(self) -> tuple[Variants, ...]:
        """Return the alternatives: the thread of the NIC's driver launches gathers, unless a
        persistent kernel gathers. The tables that pool at their owner are given."""
        threads, *_ = host_variants(
            self.site.threads if self.site.point.system.persistent_gather else THREADS - 1)
        own = {**_chosen(self.site), "pace_us": round(self.site.point.system.pace_us)}
        return (threads, *(({name: value},) for name, value in own.items()), tuple(
            {"communicators": count} for count in ((1, 2) if self.site.training else (1,))))

    def ways(self, option: HostTuning, few: bool = False) -> list[list[Step]]:
        """Return the steps for each way to sum the MLPs' gradients."""
        devices = option.devices(self.site.devices)
        return [[smartnic(w, devices, way, of, "sc" in self._parts, "lc" in self._parts)
                 for w, of in zip(self.site.work.plain, self._times)]
                for way in sums(self.step_options, devices)]

    def in_words(self, option: HostTuning) -> tuple[str, ...]:
        """Return the chosen options, the tables that pool at their owner, and the part that is
        analytical."""
        notes = () if "sc" in self._parts or not self.site.training else (
            "analytical: gradients of bags from GPU to GPU through the NICs, as bytes",)
        return (*notes, *super().in_words(option), *pooled_in_words(
            self.site.point.system.owner_tables, self.site.trace.model.tables,
            self.site.point.system.update if self.site.training else None))


def times_of(nic: NicPart | None) -> list[NicTimes]:
    """Return the times of a system's NICs; ``ValueError`` without NICs."""
    if nic is None:
        raise ValueError("nic must be the NICs of the system, not None")
    return nic.times
