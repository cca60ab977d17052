"""The systems of the evaluation, one class per kind, and their registry."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from math import ceil
from typing import Any, ClassVar

from host.systems import (
    BAG_PACES,
    PACES,
    POOLS,
    THREADS,
    EnTuning,
    HostTuning,
    NicTimes,
    NicTuning,
    Step,
    Tuning,
    Variants,
    all_on_nic,
    best,
    bl_paper,
    bl_tuned,
    cpu_mpi,
    fixed_of,
    host_variants,
    smartnic,
    tuning_variants,
)
from host.systems.all_on_nic import not_applicable
from sim.evaluation.en import EmberNic, deliveries, least_times, link_bounds
from sim.evaluation.fields import CardOptions, Fields, Options, SmartNicOptions
from sim.evaluation.nic import NicPart, Nics, busy_times
from sim.evaluation.pooling import owner_tables, pooled_in_words
from sim.evaluation.search import GAIN, Built, Plain, Search, Site, sums
from sim.evaluation.system import PARTS, System

__all__ = ["BASELINES", "EN", "FULL", "REGISTRY", "SYSTEMS", "canonical", "fixed_for",
           "system_of"]


class CpuMpi(System):
    """CPUs and MPI, without GPUs."""

    in_graphs: ClassVar[bool] = False
    least_nodes: ClassVar[int] = 2
    of_endpoints: ClassVar[bool] = False

    def search(self, site: Site, nic: NicPart | None, all_reduce: bool = True) -> Search:
        """Return the search; only the mini-batches in flight are compared."""
        return Plain(site, all_reduce, lambda options: [
            [cpu_mpi(w, site.devices, options) for w in site.work.plain]])


class BlPaper(System):
    """The paper's GPU baseline."""

    in_graphs: ClassVar[bool] = False

    def search(self, site: Site, nic: NicPart | None, all_reduce: bool = True) -> Search:
        """Return the search over the libraries that sum the MLPs' gradients."""
        return Plain(site, all_reduce, lambda options: [
            [bl_paper(w, site.devices, way) for w in site.work.plain]
            for way in sums(options, site.devices) if not way.buckets])


class BlTuned(System):
    """The best system of GPUs alone."""

    tuning: ClassVar[type[HostTuning] | None] = Tuning

    def check(self, point: Fields) -> None:
        """Raise ``ValueError`` for options that the cluster excludes."""
        super().check(point)
        if "exchange=gpu" in point.system.fixed and not point.cluster.rdma:
            raise ValueError("exchange must be nccl or mpi, not 'gpu': the cluster has no rdma")

    def search(self, site: Site, nic: NicPart | None, all_reduce: bool = True) -> Search:
        """Return the search over the options of :class:`host.systems.Tuning`."""
        return _Tuned(site, all_reduce)


class _Tuned(Search):
    """Search of bl-tuned."""

    kind = Tuning
    coarse = frozenset({"exchange", "dedupe", "host_indices", "grouped", "copied_rows",
                        "bags_once"})

    def __init__(self, site: Site, all_reduce: bool):
        super().__init__(site, all_reduce)
        self._step = cache(self._step_of)

    def all_variants(self) -> tuple[Variants, ...]:
        """Return the alternatives of the options that can matter at this site."""
        site = self.site
        return tuning_variants(
            site.training, site.devices.rdma, site.repeats, site.devices.nccl.by_rail,
            site.key_bytes, site.point.cluster.wire, site.copied_rows, site.threads)

    def apart(self, option: Tuning) -> str:
        """Return the exchange, which decides about many other options."""
        return option.exchange

    def allows(self, option: Tuning, depth: int, per_graph: int) -> bool:
        """Return whether an exchange can be grouped with one of an earlier mini-batch in another
        graph, and whether a graph has several exchanges."""
        return (depth >= 2 * per_graph or not option.grouped) and (
            per_graph > 1 or not option.one_collective)

    def ways(self, option: Tuning, few: bool = False) -> list[list[Step]]:
        """Return the steps with a tuning."""
        work = self.site.work
        return [[self._step(option, number)
                 for number in (work.extremes if few else range(len(self.site.trace.measured)))]]

    def _step_of(self, tuning: Tuning, number: int) -> Step:
        return bl_tuned(self.site.work.one_copied(tuning.copied_rows, number), self.site.devices,
                        self.step_options, tuning)


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
        if point.workload.training and pool != POOLS[0]:
            raise ValueError(f"pool must be {POOLS[0]} in training, not {pool!r}")

    def without_interaction(self) -> dict[str, Any]:
        """Return the system whose NICs pool."""
        left = "+".join(part for part in PARTS if part in self.parts - {"sc"})
        return {"system": left or "nic"}

    def search(self, site: Site, nic: NicPart | None, all_reduce: bool = True) -> Search:
        """Return the search over the options of every system and the ways to sum the MLPs'
        gradients."""
        return _SmartNics(site, all_reduce, _times(nic))

    def at(self, site: Site, all_reduce: bool = True) -> tuple[Built, NicPart | None]:
        """Return the system with its best options and NICs.

        The tables pool at the requester, or each where the traffic is less; NICs run alone only for
        the faster of both. In inference, the driver may wait between launches: fewer gathers leave
        more of the GPU to other kernels, up to some pace. In fidelity rtl, the driver has the pace
        of the point.
        """
        sites = _places(site)
        own = sites[0] if len(sites) == 1 else best(
            sites, lambda own: (_least_us(own),),
            lambda own: (self._interval_us(own, self._least(own), all_reduce),),
            lambda own: (super(SmartNic, self).at(own, all_reduce)[0].interval_us,))
        return self._paced(own, all_reduce)

    def reaches(self, site: Site, us: float) -> bool:
        """Return whether the interval may be below ``us`` without any use of driver and GPU by
        gathers, and with a lower bound of the latencies."""
        return site.training or any(
            _least_us(own) < us and self._interval_us(own, _without_gathers(self._least(own))) < us
            for own in _places(site))

    def _paced(self, site: Site, all_reduce: bool) -> tuple[Built, NicPart | None]:
        """Return the system with its best pace of launches."""
        built, nic = super().at(site, all_reduce)
        own = site.point.system
        if site.training or own.persistent_gather or own.fidelity != "model" or nic is None:
            return built, nic
        free = self._interval_us(site, _without_gathers(nic.times), all_reduce)
        if free * GAIN >= built.interval_us:
            return built, nic
        call = max(site.devices.software.launch_call_us, own.pace_us)
        paces = (*PACES, *BAG_PACES) if own.owner_tables else PACES
        worse = 0
        for pace in (each for each in paces if each > call):
            slower, worse = replace(site, point=site.point.changed(pace_us=pace)), worse + 1
            if self._interval_us(slower, self._least(slower), all_reduce) < built.interval_us:
                found, paced = super().at(slower, all_reduce)
                if found.interval_us < built.interval_us:
                    worse, built, nic = 0, replace(found, notes=(
                        *found.notes, f"a launch of gathers every {pace:g} us at most")), paced
            if worse == _WORSE:
                break
        return built, nic

    def _interval_us(self, site: Site, times: list[NicTimes], all_reduce: bool = True) -> float:
        """Return the interval with the best options of the host and given times of NICs."""
        return _SmartNics(site, all_reduce, times).best().interval_us

    def _least(self, site: Site) -> list[NicTimes]:
        """Return the times of NICs with a lower bound of the latencies, which take further runs."""
        busy = busy_times(site.point, self.nics(site.point), site.nic_trace, site.devices,
                          site.runs)
        return [replace(each, phases=least.phases)
                for each, least in zip(busy, _least_times(site))]


def _without_gathers(times: list[NicTimes]) -> list[NicTimes]:
    """Return the times of NICs whose gathers need neither driver nor GPU."""
    return [replace(each, launches=0.0, gathers=0.0, gathered=0.0, pooled_launches=0.0)
            for each in times]


def _places(site: Site) -> list[Site]:
    """Return a site with each set of tables that may pool at their owner, the one with the least
    traffic first."""
    point = site.point
    if point.system.owner_tables or site.training:
        return [site]
    pool = fixed_of(NicTuning, point.system.fixed).get("pool")
    pools = (pool,) if pool else ("auto", POOLS[0])
    return [replace(site, point=point.changed(owner_tables=owner)) for owner in dict.fromkeys(
        owner_tables(point, site.nic_trace, each) for each in pools)]


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
        pool = self.fixed.get("pool", "auto" if self.site.point.system.owner_tables else POOLS[0])
        return threads, ({"pool": pool},), tuple(
            {"communicators": count} for count in ((1, 2) if self.site.training else (1,)))

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
            self.site.point.system.owner_tables, self.site.trace.model.tables))


class AllOnNic(System):
    """Everything on the SmartNIC, without a GPU."""

    options: ClassVar[type[Options]] = CardOptions
    in_graphs: ClassVar[bool] = False
    of_endpoints: ClassVar[bool] = False

    def why_not(self, site: Site) -> str | None:
        """Return the reason if the tables do not fit on the cards, None if they do."""
        return super().why_not(site) or not_applicable(site.work.plain[0])

    def nics(self, point: Fields) -> Nics:
        """Return the NICs, whose rows are in the card's HBM."""
        return Nics(settings=self.settings, on_card=True)

    def search(self, site: Site, nic: NicPart | None, all_reduce: bool = True) -> Search:
        """Return the search; only the mini-batches in flight are compared."""
        times = _times(nic)
        return Plain(site, all_reduce, lambda options: [
            [all_on_nic(w, site.devices, options, of)
             for w, of in zip(site.work.plain, times)]],
            ("analytical: MLPs on the multipliers that the NIC leaves in its SLR",))


def _times(nic: NicPart | None) -> list[NicTimes]:
    """Return the times of a system's NICs; ``ValueError`` without NICs."""
    if nic is None:
        raise ValueError("nic must be the NICs of the system, not None")
    return nic.times


def _subset(name: str) -> SmartNic:
    return SmartNic(name, name.upper(), frozenset(name.split("+")))


REGISTRY: tuple[System, ...] = (
    CpuMpi("cpu-mpi", "CPU-MPI"),
    BlPaper("bl-paper", "BL"),
    BlTuned("bl-tuned", "BL-tuned"),
    SmartNic("nic", "NIC alone"),
    _subset("lc"),
    _subset("rc"),
    _subset("sc"),
    _subset("lc+rc"),
    _subset("lc+sc"),
    _subset("rc+sc"),
    _subset("lc+rc+sc"),
    AllOnNic("all-on-nic", "all on the NIC"),
    EmberNic("en", "EN", frozenset(("lc", "rc"))),
)
"""Every system. A variant of the paper's full system with other NIC settings is one line:
``SmartNic("fs-merge", "FS-merge", frozenset(PARTS), True, ("requester_merge=true",))``."""

FULL, EN = "fs", "en"

_BY_NAME = {system.name: system for system in REGISTRY}

SYSTEMS = tuple(_BY_NAME)
"""Every system by its canonical name. ``ga`` is not part of the name: it selects how mini-batches
are formed."""

BASELINES = tuple(system.name for system in REGISTRY if not system.has_nics)
"""Systems without a SmartNIC."""


def system_of(name: str) -> System:
    """Return the system of a canonical name."""
    return _BY_NAME[name]


def fixed_for(name: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Return the ``name=value`` texts whose option the system of a canonical name has.

    Raises ``ValueError`` for a text whose option no system has.
    """
    known = {system.name: vars(system.tuning()) for system in REGISTRY if system.tuning is not None}
    for text in texts:
        if not any(text.partition("=")[0] in own for own in known.values()):
            raise ValueError(f"fixed must name one of "
                             f"{', '.join(dict.fromkeys(chain(*known.values())))}, not {text!r}")
    return tuple(text for text in texts if text.partition("=")[0] in known.get(name, {}))


def canonical(name: str, workload: str = "inference") -> tuple[str, bool]:
    """Return the canonical name of a system, and whether the graph algorithm forms its
    mini-batches.

    ``name``: one of `SYSTEMS` in any case, with its parts in any order. ``ga`` may be added to any
    system (``bl-tuned+ga``); alone it means ``bl-paper``. ``fs`` is every part that the workload
    allows, with the graph algorithm.

    Raises ``ValueError`` for an unknown name, and for a remote cache in training.
    """
    parts = name.lower().split("+")
    graph = "ga" in parts
    kept = [part for part in parts if part != "ga"]
    if FULL in kept:
        kept += ["lc", "sc"] if workload == "training" else PARTS
        kept.remove(FULL)
        graph = True
    if kept and all(part in PARTS for part in kept):
        kept = ["+".join(part for part in PARTS if part in kept)]
    found = kept[0] if kept else "bl-paper"
    if len(kept) > 1 or found not in SYSTEMS:
        raise ValueError(f"system must be one of {', '.join(SYSTEMS)}, ga with any of them, or fs, "
                         f"not {name!r}")
    if workload == "training" and "rc" in found.split("+"):
        raise ValueError(f"system must be without rc in training, where its rows go stale, "
                         f"not {name!r}")
    return found, graph or system_of(found).graph
