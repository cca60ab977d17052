"""The systems of the evaluation, one class per kind, and their registry."""

from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import ClassVar

from host.systems import (
    HostTuning,
    Step,
    Tuning,
    Variants,
    all_on_nic,
    bl_paper,
    bl_tuned,
    cpu_mpi,
    tuning_variants,
    wires_to,
)
from host.systems.all_on_nic import not_applicable
from sim.evaluation.en import EmberNic
from sim.evaluation.fields import CardOptions, Fields, Options
from sim.evaluation.nic import NicPart
from sim.evaluation.nic_options import Nics
from sim.evaluation.pooling import why_not_weighted
from sim.evaluation.search import Plain, Search, sums
from sim.evaluation.site import Site
from sim.evaluation.smart_nic import SmartNic, times_of
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

    def wires(self, point: Fields) -> tuple[str, ...]:
        """Return the formats down to the shortest of the cluster."""
        return wires_to(point.cluster.wire)

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


class AllOnNic(System):
    """Everything on the SmartNIC, without a GPU."""

    options: ClassVar[type[Options]] = CardOptions
    in_graphs: ClassVar[bool] = False
    of_endpoints: ClassVar[bool] = False

    def why_not(self, site: Site) -> str | None:
        """Return the reason if the tables do not fit on the cards, None if they do."""
        return (super().why_not(site) or not_applicable(site.work.plain[0])
                or why_not_weighted(site.trace, ()))

    def nics(self, point: Fields) -> Nics:
        """Return the NICs, whose rows are in the card's HBM."""
        return Nics(settings=self.settings, on_card=True)

    def search(self, site: Site, nic: NicPart | None, all_reduce: bool = True) -> Search:
        """Return the search; only the mini-batches in flight are compared."""
        times = times_of(nic)
        return Plain(site, all_reduce, lambda options: [
            [all_on_nic(w, site.devices, options, of)
             for w, of in zip(site.work.plain, times)]],
            ("analytical: MLPs on the multipliers that the NIC leaves in its SLR",))


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
