"""EN at a point: its NICs, and the search for the options that it is fastest with."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import ceil
from typing import Any, ClassVar

from host.model import Model
from host.systems import (
    Delivery,
    Devices,
    EnTuning,
    Step,
    delivery_of,
    en,
    en_tunings,
    fixed_of,
    options_of,
    ring_of,
)
from host.systems.nic_times import NicTimes
from host.timing.clock import CYCLE_NS
from host.wire.indices import MOST_INDICES
from rtl.config import LANES
from sim.evaluation.fields import EnOptions, Fields, Options, SmartNicOptions
from sim.evaluation.gradient_path import with_updates
from sim.evaluation.nic import NicPart, Nics, nic_part
from sim.evaluation.search import Built, Choice, Search, Site, sums
from sim.evaluation.system import PARTS, Evaluated, System
from sim.evaluation.trace import Trace, copied_all, plan_of, without_small
from sim.job.row_places import check_bar

__all__ = ["SIZES", "EmberNic", "EnSearch", "check_seen", "deliveries", "en_nic", "least_times",
           "nic_devices", "nic_point"]

SIZES = {"terabyte": ("hold_vectors=2048", "global_gradient_keys=2048")}
"""Buffers of a data set's NIC beyond its preset, twice the preset's hold buffer and table of
gradients: with launched gathers FS waits for the first, and in training for the second
(docs/evaluation.md). By bits, 64 + 32 + 16 + 134 URAM of an SLR's 320; no build has shown it."""


def nic_point(point: Fields, devices: Devices, tuning: EnTuning) -> tuple[Fields, Nics]:
    """Return a point with the settings that EN's NICs have under ``tuning``, and the NICs: what
    they deliver, whether they open and complete steps, and whether lists and vectors pass rings in
    GPU memory, are settings of them."""
    training, given = point.workload.training, point.system
    parts = {"lc"} if training else {"lc", "rc"}
    if tuning.deliver == "interaction" or training:
        parts.add("sc")
    own = [f"requester_merge={str(tuning.merge).lower()}"]
    own += ["output_queues=true"] * tuning.queues
    own += ["deliver=unique"] * (tuning.deliver == "unique")
    if tuning.completion:
        flush = str(devices.gpu.gpu.flush_reads > 0).lower()
        own += ["completions=true", f"completion_flush={flush}"]
    own += ["gpu_rings=true"] * tuning.ring + ["row_reads=true"] * tuning.reads
    own += SIZES.get(point.workload.dataset, ()) if tuning.sizes else ()
    names = {each.partition("=")[0] for each in given.settings}
    own = [each for each in own if each.partition("=")[0] not in names]
    return replace(point, system=SmartNicOptions(
        "+".join(sorted(parts, key=PARTS.index)), fidelity=given.fidelity,
        local_cache=given.local_cache, remote_cache=given.remote_cache,
        settings=(*own, *given.settings), persistent_gather=tuning.ring)), Nics(frozenset(parts))


def nic_devices(devices: Devices, tuning: EnTuning) -> Devices:
    """Return the devices that EN's NICs see."""
    return ring_of(devices) if tuning.ring else devices


def check_seen(site: Site, tuning: EnTuning) -> None:
    """Raise ``ValueError`` where NICs are to read rows that they do not see."""
    if tuning.reads:
        left = without_small(site.trace, tuning.copied_rows)
        point, _ = nic_point(site.point, site.devices, tuning)
        check_bar(plan_of(point, left), left.model.dimension, site.devices.gpu.gpu)


def deliveries(point: Fields, trace: Trace, copied_rows: int) -> list[Delivery]:
    """Return what NICs deliver of each measured mini-batch where GPUs have copies of each table of
    at most so many rows."""
    small = tuple(rows <= copied_rows for rows in trace.model.rows)
    return [delivery_of(batch.samples, small, point.cluster.nodes) for batch in trace.measured]


def least_times(model: Model, tuning: EnTuning, of: Delivery, samples: int) -> NicTimes:
    """Return times that no NIC is below: a slot a cycle is looked up, and a beat a cycle moves of
    what is delivered, or of every slot where the NIC pools or interacts.

    ``samples``: of a share.
    """
    moved = of.vectors if tuning.deliver == "unique" else of.slots
    us = max(of.slots, moved * max(1, model.dimension // LANES)) * CYCLE_NS / 1e3
    return NicTimes({"embedding_lookup": us}, us,
                    delivered_bytes=of.result_bytes(tuning.deliver, model, samples))


def en_nic(site: Site, tuning: EnTuning) -> NicPart:
    """Return the times of EN's NICs, over the trace without tables that the GPUs copy.

    They deliver as ``tuning`` says, and with completions their times end with the word that each
    writes behind its last answer.
    """
    return nic_part(*nic_point(site.point, site.devices, tuning),
                    without_small(site.trace, tuning.copied_rows),
                    nic_devices(site.devices, tuning), site.runs)


class EmberNic(System):
    """EmberNIC with all it can, beyond the paper: see :func:`host.systems.en.en`."""

    options: ClassVar[type[Options]] = EnOptions
    in_rtl: ClassVar[bool] = True
    chooses_nics: ClassVar[bool] = True
    program_settings: ClassVar[tuple[str, ...]] = (
        "requester_merge=true", "deliver=unique", "completions=true")

    def without_interaction(self) -> dict[str, Any]:
        """Return EN whose NICs deliver each different vector once."""
        return super().without_interaction() | {"en": ("deliver=unique",)}

    def check(self, point: Fields) -> None:
        """Raise ``ValueError`` for options that do not go together."""
        en_tunings(point.workload.training, fixed_of(point.system.en))

    def search(self, site: Site, nic: NicPart | None, all_reduce: bool = True) -> "EnSearch":
        """Return the search; ``nic``: NICs for every option, None to run those of each."""
        return EnSearch(site, all_reduce, nic)

    def run_nics(self, site: Site) -> NicPart:
        """Run the NICs with the options that the point has."""
        return en_nic(site, _tuning(site.point))

    def at(self, site: Site, all_reduce: bool = True) -> tuple[Built, NicPart]:
        """Return EN with the options, and the mini-batches in flight, of the shortest interval.

        NICs are run only for options that could be faster than the best so far, in fidelity
        ``model``, which follows RTL to the cycle; the NICs of the chosen options are run in the
        point's fidelity.
        """
        modelled = replace(site, point=site.point.changed(fidelity="model"))
        search = self.search(modelled, None, all_reduce)
        built = search.best()
        if site.point.system.fidelity != "model":
            search = self.search(site, None, all_reduce)
            built = search.whole(Choice(site.point.flights, built.tuning))
        return built, search.nic(built.tuning)

    def without_all_reduce(self, site: Site, nic: NicPart | None) -> Built:
        """Return EN without the sum of the MLPs' gradients over the nodes."""
        return self.at(site, all_reduce=False)[0]

    def timed(self, site: Site, nic: NicPart | None, times: list[NicTimes] | None = None,
              near: None = None) -> Built:
        """Return EN with the options that the point has, and given NICs."""
        if nic is None:
            raise ValueError("nic must be the NICs of EN, not None")
        found = nic if times is None else replace(nic, times=times)
        return self.search(site, found).whole(Choice(site.point.flights, _tuning(site.point)))

    def as_seen(self, point: Fields, devices: Devices) -> tuple[Fields, Nics, Devices]:
        """Return a point of the paper's systems with the same NICs; an open option is on."""
        own = _tuning(point)
        return *nic_point(point, devices, own), nic_devices(devices, own)

    def served_ways(self, point: Evaluated) -> list[Evaluated]:
        """Return a point for each way to get rows that EN may choose."""
        ways = {(each.ring, each.reads): each
                for each in en_tunings(point.workload.training, fixed_of(point.system.en))}
        return [point.changed(en=options_of(each)) for each in ways.values()]

    def settled(self, point: Evaluated, built: Built) -> Evaluated:
        """Return a point with every option as ``built`` has it."""
        return super().settled(point, built).changed(en=options_of(built.tuning))


class EnSearch(Search):
    """The search of EN, each of whose options has NICs of its own.

    Each different vector is delivered once only where every share has an index for each slot,
    unless it must be. NICs read rows only where they see all tables of theirs; ``ValueError`` if
    they must and do not.

    Parameters: ``site``, ``all_reduce``; ``given``, NICs for every option, None to run those of
    each.
    """

    def __init__(self, site: Site, all_reduce: bool, given: NicPart | None = None):
        super().__init__(site, all_reduce)
        self.nic = cache(self._nic if given is None else lambda tuning: given)
        self._delivered = cache(lambda rows: deliveries(site.point, site.trace, rows))
        self._every: list[EnTuning] = []

    def options(self, near: None = None) -> Sequence[EnTuning]:
        """Return the options that EN may choose here."""
        if not self._every:
            site = self.site
            every = [each for each in en_tunings(site.training, fixed_of(site.point.system.en))
                     if not copied_all(site.trace, each.copied_rows)]
            every = [each for each in every if self._fits(each)] or every
            if not any(map(self._sees, every)):
                check_seen(site, every[0])
            self._every = [each for each in every if self._sees(each)]
        return self._every

    def ways(self, option: EnTuning, few: bool = False) -> list[list[Step]]:
        """Return the steps for each way to sum the gradients of the MLPs."""
        return self._ways(option, self.nic(option).times, few)

    def least_ways(self, option: EnTuning) -> list[list[Step]]:
        """Return steps whose NICs nothing but a cycle a slot and a beat holds up."""
        share = ceil(self.site.trace.mini_batch / self.site.point.cluster.nodes)
        return self._ways(option, [
            least_times(self.site.trace.model, option, of, share)
            for of in self._delivered(option.copied_rows)], few=True)

    def in_words(self, option: EnTuning) -> tuple[str, ...]:
        """Return what EN uses."""
        return (f"EN is fastest with {option.in_words()}",)

    def whole(self, choice: Choice) -> Built:
        """Return EN with the options of a choice, over all mini-batches and flights."""
        return super().whole(replace(choice, flights=self.site.point.flights))

    def pick(self, found: list[Built]) -> Built:
        """Return the first of the fastest."""
        return min(found, key=lambda each: round(each.interval_us, 6))

    def _nic(self, tuning: EnTuning) -> NicPart:
        site = self.site
        part = en_nic(site, tuning)
        if site.training:
            part = with_updates(*nic_point(site.point, site.devices, tuning), site.trace,
                                nic_devices(site.devices, tuning), site.work, part)
        return part

    def _fits(self, tuning: EnTuning) -> bool:
        """Return whether there are as many indices as slots, where slots have them."""
        return tuning.deliver != "unique" or all(
            of.slots <= MOST_INDICES for of in self._delivered(tuning.copied_rows))

    def _sees(self, tuning: EnTuning) -> bool:
        """Return whether NICs see all rows that they read."""
        try:
            check_seen(self.site, tuning)
        except ValueError:
            return False
        return True

    def _ways(self, tuning: EnTuning, times: list[NicTimes], few: bool) -> list[list[Step]]:
        site = self.site
        numbers = site.work.extremes if few else range(len(times))
        own = self._delivered(tuning.copied_rows)
        return [[en(site.work.plain[n], site.devices, way, times[n], own[n], tuning)
                 for n in numbers] for way in sums(self.step_options, site.devices)]


def _tuning(point: Fields) -> EnTuning:
    """Return the options that a point has; an open one is on."""
    return EnTuning(**fixed_of(point.system.en))
