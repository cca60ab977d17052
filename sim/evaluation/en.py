"""EN at a point: its NICs, and the search for its fastest options."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from math import ceil
from typing import ClassVar

import numpy as np

from gen.base.settings import overridden, setting_name
from host.model import Model
from host.once import once
from host.systems import (
    BAG_PACES,
    POOLS,
    Delivery,
    Devices,
    EnTuning,
    HostTuning,
    Step,
    Variants,
    Way,
    delivery_of,
    en,
    en_variants,
    every,
    fixed_of,
    open_variants,
    ring_of,
    start_of,
)
from host.systems.nic_times import NicTimes
from host.timing.clock import CYCLE_NS, cycles_of_us
from host.wire.indices import MOST_INDICES, pooled_instead
from rtl.config import LANES, NicConfig
from rtl.formats import DescriptorKind
from sim.evaluation.fields import Fields, NicOptions, Options, SmartNicOptions
from sim.evaluation.gradient_path import with_updates
from sim.evaluation.nic import NicPart, Nics, busy_times, nic_part
from sim.evaluation.pooling import least_vectors, owner_tables, pooled_in_words, slots_of
from sim.evaluation.search import GAIN, Built, Choice, Search, Site, cost_of, fastest, lowest, sums
from sim.evaluation.system import PARTS, System, nics_interact
from sim.evaluation.trace import (
    Trace,
    copied_all,
    model_without,
    plan_of,
    tally_of,
    without_small,
)
from sim.job.row_places import BarError, check_bar

__all__ = ["SIZES", "EmberNic", "EnSearch", "check_seen", "deliveries", "en_nic", "least_times",
           "link_bounds", "nic_devices", "nic_point", "owner_pooled"]

_SEARCHED = ("row_reads", "gpu_rings")
"""Settings that options of EN choose."""

OFTEN = 0.5
"""Least share of lookups in repeated bags at which EN considers to send repeated bags once. The
hosts of these runs are in Python, which takes longer to simulate."""

SIZES = {"terabyte": ("hold_vectors=2048", "global_gradient_keys=2048")}
"""Buffers of a data set's NIC that differ from its preset: twice the hold buffer and twice the
global gradient table. Their size is 64 + 32 + 16 + 134 URAM of the 320 in an SLR, computed from
bits."""


def nic_point(point: Fields, devices: Devices, tuning: EnTuning,
              owner: tuple[int, ...] = ()) -> tuple[Fields, Nics]:
    """Return a point with the NIC settings of EN under ``tuning``, and its NICs; ``owner``: tables
    that pool at their owner."""
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
    if tuning.patient:
        trip = round(cycles_of_us(2 * devices.network.one_way_us))
        own += [f"lookup_timeout={trip}", f"vector_timeout={trip}"]
    own += ["gpu_rings=true"] * tuning.ring + ["row_reads=true"] * tuning.reads
    return replace(point, system=SmartNicOptions(
        "+".join(sorted(parts, key=PARTS.index)), fidelity=given.fidelity,
        local_cache=given.local_cache, remote_cache=given.remote_cache,
        settings=overridden(own, given.settings), sampled=given.sampled,
        persistent_gather=tuning.ring, pace_us=tuning.pace_us, owner_tables=owner,
        update=tuning.update, own_bags="gpu" if reads_own(point, tuning) else "nic",
        repeats="neighbours" if tuning.bags_once else "send")), Nics(
            frozenset(parts), SIZES.get(point.workload.preset, ()) if tuning.sizes else ())


def reads_own(point: Fields, tuning: EnTuning) -> bool:
    """Return whether GPUs read the rows of their own node for their own samples."""
    return (tuning.own_at_gpu and tuning.deliver != "interaction" and not point.workload.training
            and point.cluster.endpoints > 1 and point.cluster.gpus_per_nic == 1)


def nic_devices(devices: Devices, tuning: EnTuning) -> Devices:
    """Return the devices as EN's NICs see them."""
    return ring_of(devices) if tuning.ring else devices


def check_seen(site: Site, tuning: EnTuning) -> None:
    """Raise :class:`BarError` if NICs must read rows that the GPU's BAR does not expose."""
    if tuning.reads:
        point, _ = nic_point(site.point, site.devices, tuning)
        plan = plan_of(point, site.trace, tuning.copied_rows)
        check_bar(plan, model_without(site.trace, tuning.copied_rows).width,
                  site.devices.gpu.gpu)


def deliveries(point: Fields, trace: Trace, copied_rows: int, owner: tuple[int, ...] = (),
               once: bool = False, own: bool = False) -> list[Delivery]:
    """Return what NICs deliver in each measured mini-batch if GPUs copy each table of at most
    ``copied_rows`` rows; ``owner``: tables that pool at their owner, numbered without copied
    tables; ``once``: whether repeated bags are not sent; ``own``: whether GPUs read the rows of
    their own node."""
    small = tuple(rows <= copied_rows for rows in trace.model.rows)
    kept = np.flatnonzero(~np.array(small)).tolist()
    tables = plan_of(point, trace, copied_rows).tables if owner or own else ()
    whole = [table for table, of in enumerate(tables)
             if own and table not in owner and of.kind == DescriptorKind.TABLE]
    return list(_deliveries(trace, small, point.cluster.endpoints, *(
        tuple((kept[table], tables[table].owner) for table in of) for of in (owner, whole)), once))


@once
def _deliveries(trace: Trace, small: tuple[bool, ...], endpoints: int,
                pooled: tuple[tuple[int, int], ...], own: tuple[tuple[int, int], ...],
                once: bool) -> tuple[Delivery, ...]:
    return tuple(delivery_of(tally_of(trace, number, endpoints), small, dict(pooled), once,
                             dict(own))
                 for number in range(len(trace.measured)))


def least_times(model: Model, tuning: EnTuning, of: Delivery, samples: int,
                link_us: float = 0.0) -> NicTimes:
    """Return a lower bound of the NIC times: one slot is looked up per cycle, or one segment of a
    bag sent, and one beat is delivered per cycle.

    samples: samples of a share. link_us: microseconds of the busiest network link, see
    :func:`link_bounds`.
    """
    moved = of.vectors if tuning.deliver == "unique" else of.slots
    us = max(of.slots + of.segments, moved * max(1, model.width // LANES)) * CYCLE_NS / 1e3
    us = max(us, link_us)
    own = (0, 0) if tuning.deliver == "interaction" else (of.own_rows, of.own_bags)
    return NicTimes({"embedding_lookup": us}, us, own_rows=own[0], own_bags=own[1],
                    delivered_bytes=of.result_bytes(tuning.deliver, model, samples))


def link_bounds(site: Site, owner: tuple[int, ...], copied_rows: int = 0,
                once: bool = False) -> list[float]:
    """Return a lower bound of the busiest network link's time for each measured mini-batch, in
    microseconds; 0 where a NIC serves several GPUs. ``owner``: tables that pool at their owner.
    ``once``: whether repeated bags are not sent."""
    if site.point.cluster.gpus_per_nic > 1:
        return [0.0] * len(site.trace.measured)
    size, rate = 4 * site.trace.model.width, site.devices.network.bandwidth_gbit_s / 8 * 1e3
    return [size / rate * least_vectors(site.point, site.trace, number, owner, copied_rows,
                                        once)
            for number in range(len(site.trace.measured))]


def owner_pooled(site: Site, tuning: EnTuning) -> tuple[int, ...]:
    """Return the tables of EN that pool at their owner, numbered without copied tables."""
    return owner_tables(site.point, site.nic_trace, tuning.pool, tuning.copied_rows,
                        tuning.bags_once, tuning.update)


def en_nic(site: Site, tuning: EnTuning) -> NicPart:
    """Run EN's NICs over the trace without the tables that GPUs copy.

    With completions, the times end with the completion word that each NIC writes.
    """
    return nic_part(*_nics_of(site, tuning), site.runs)


def _nics_of(site: Site, tuning: EnTuning) -> tuple[Fields, Nics, Trace, Devices]:
    """Return the point, the NICs, the trace and the devices of a run of EN's NICs."""
    return (*nic_point(site.point, site.devices, tuning, owner_pooled(site, tuning)),
            without_small(site.nic_trace, tuning.copied_rows), nic_devices(site.devices, tuning))


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
        _consistent(point)

    def why_not_placed(self, site: Site) -> str | None:
        """Return the reason if the system cannot be built with the site's placement, such as rows
        that its NICs must read and do not see; None if it can."""
        if why := self.why_not(site):
            return why
        if fixed_of(EnTuning, site.point.system.fixed).get("reads"):
            try:
                self.search(site, None).options()
            except ValueError as error:
                return str(error)
        return None

    def search(self, site: Site, nic: NicPart | None, all_reduce: bool = True) -> "EnSearch":
        """Return the search; ``nic``: NICs for every option, None to run the NICs of each option.
        """
        return EnSearch(site, all_reduce, nic)

    def at(self, site: Site, all_reduce: bool = True) -> tuple[Built, NicPart]:
        """Return EN with the options, and the mini-batches in flight, of the shortest interval.

        The search runs NICs in fidelity ``model``, and only for options whose lower bound is below
        the best interval so far. The NICs of the chosen options then run in the point's fidelity.
        """
        modelled = replace(site, point=site.point.changed(fidelity="model"))
        search = self.search(modelled, None, all_reduce)
        built = search.best()
        if site.point.system.fidelity != "model":
            search = self.search(site, None, all_reduce)
            built = search.whole(Choice(site.point.flights, built.tuning))
        return built, search.nic(built.tuning)

    def without_all_reduce(self, site: Site, nic: NicPart | None) -> Built:
        """Return EN without the all-reduce of the MLPs' gradients."""
        return self.at(site, all_reduce=False)[0]

    def as_seen(self, point: Fields, devices: Devices) -> tuple[Fields, Nics, Devices]:
        """Return a point of the paper's systems with the same NICs; an open option is on."""
        own = _tuning(point)
        return *nic_point(point, devices, own), nic_devices(devices, own)


class EnSearch(Search):
    """Search of EN. The NICs depend on the option, so that a round changes few options.

    NICs hold the slots of a sample in tables that GPUs do not copy. Delivery of unique vectors
    requires an index for each slot of a share, and delivery of interactions a model of
    `nics_interact`, unless the point fixes it. NICs read rows themselves only if they see all their
    tables; ``ValueError`` if the point requires it and they do not.

    Parameters: ``site``, ``all_reduce``; ``given``, NICs for every option, None to run the NICs of
    each option.
    """

    kind = EnTuning
    changes = 1

    def __init__(self, site: Site, all_reduce: bool, given: NicPart | None = None):
        super().__init__(site, all_reduce)
        self._run = cache(self._nic if given is None else lambda tuning: given)
        self._measured = given is None and not site.training
        self._busy = cache(lambda tuning: busy_times(*_nics_of(site, tuning), site.runs))
        self._paced = cache(self._paced_of)
        self._delivered = cache(lambda rows, owner, once, own: deliveries(
            site.point, site.trace, rows, owner, once, own))
        self._owner = cache(lambda pool, rows, once, update: owner_tables(
            site.point, site.nic_trace, pool, rows, once, update))
        self._link_us = cache(lambda owner, rows, once: link_bounds(site, owner, rows, once))
        self._every: list[EnTuning] = []

    def nic(self, tuning: EnTuning) -> NicPart:
        """Return the NICs of an option; they do not depend on the options of the host."""
        return self._run(replace(tuning, **vars(HostTuning())))

    def all_variants(self) -> tuple[Variants, ...]:
        """Return the alternatives that differ at this site; NICs serve at least one table. The
        tables pool at the requester, or each where the traffic is less; in training also at the
        owner."""
        site = self.site
        # GPUs that update rows spare the reducer of the NICs, which the fewest bytes do not count.
        pools = [pool for pool in ("auto", *("owner",) * site.training) if self._pools(pool)]
        if fixed := self.fixed.get("pool"):
            # Without a table that pools at its owner, the options are the same.
            self.fixed["pool"] = fixed if self._pools(fixed) else POOLS[0]
            pools = [self.fixed["pool"]]
        return en_variants(site.training, site.key_bytes, [
            rows for rows in site.copied_rows if not copied_all(site.trace, rows)], site.threads,
            dict.fromkeys((POOLS[0], *pools)), self._often())

    def _often(self) -> bool:
        """Return whether the lookups of repeated bags are at least the share `OFTEN`."""
        counts = tally_of(self.site.trace, 0, self.site.point.cluster.endpoints).counts
        return int(counts.new_keys.sum()) <= (1 - OFTEN) * int(counts.keys.sum())

    def _pools(self, pool: str) -> tuple[int, ...]:
        """Return the tables that pool at their owner if GPUs copy no table."""
        site, sent = self.site, (False, True)[:1 + self._often()]
        return tuple(sorted(set().union(*(
            owner_tables(site.point, site.nic_trace, pool, once=once) for once in sent))))

    def _tables(self, option: EnTuning) -> tuple[int, ...]:
        """Return the tables of an option that pool at their owner."""
        return self._owner(option.pool, option.copied_rows, option.bags_once, option.update)

    def options(self) -> Sequence[EnTuning]:
        """Return the options that EN may choose from at this site."""
        if not self._every:
            site = self.site
            # A pace that is no longer than a call is none.
            call = site.devices.software.launch_call_us
            found = [each for each in every(EnTuning(**self.fixed), self.variants, site.training)
                     if "pace_us" in self.fixed or (not 0 < each.pace_us <= call and (
                         each.pace_us not in BAG_PACES or each.pool != POOLS[0]))]
            found = [each for each in found if self._fits(each)] or found
            found = [each for each in found if self._reads(each)] or found
            if not any(map(self._sees, found)):
                check_seen(site, found[0])
            self._every = [each for each in found if self._sees(each)]
        return self._every

    def seeds(self) -> Sequence[EnTuning]:
        """Return, for each way to read rows, place of pooling and of updates, and number of
        threads, the option with the least lower bound, which requires no run of NICs."""
        flights, found = self.site.point.flights, {}
        for each in self.options():
            found.setdefault((each.ring, each.reads, each.pool, each.update, each.threads),
                             []).append(each)
        choices = ([Choice(flights, each) for each in group] for group in found.values())
        return [lowest(group, self._floor, self._bound).option for group in choices]

    def near(self, option: EnTuning, changes: int = 1) -> Sequence[EnTuning]:
        """Return the option, and options that differ from it in one alternative, or by the next set
        of copied tables, or by one of the next two paces."""
        rows, paces = (sorted({getattr(each, name) for each in self.options()})
                       for name in ("copied_rows", "pace_us"))
        allowed = {replace(each, patient=option.patient) for each in self.options()}
        return [each for each in super().near(option, changes) if each in allowed and abs(
            rows.index(each.copied_rows) - rows.index(option.copied_rows)) <= 1 and abs(
                paces.index(each.pace_us) - paces.index(option.pace_us)) <= 2]

    def ways(self, option: EnTuning, few: bool = False) -> list[list[Step]]:
        """Return the steps for each all-reduce of the MLPs' gradients."""
        return self._ways(option, self.nic(option).times, few)

    def least_ways(self, option: EnTuning) -> list[list[Step]]:
        """Return steps with the lower bound :func:`least_times` of the NICs."""
        return self._ways(option, self._least_times(option), few=True)

    @property
    def costs(self) -> tuple[Callable[[Choice], tuple[float, float]], ...]:
        """The lower bounds of a choice's cost, and the cost. The last bound has the intervals of
        NICs, but not yet their latencies: the latter take further runs. The bounds of systems whose
        NICs run are longer by the gain below which they do not."""
        before, own = super().costs[:-1], super().costs[-1]
        if not self._measured:
            return (*before, own)
        return (*map(_longer, (*before, self._paced_bound)), own)

    def _paced_bound(self, choice: Choice) -> tuple[float, float]:
        """Return the cost of a choice with the intervals of NICs and the least latencies."""
        return cost_of(fastest(choice.flights, *self._paced(choice.option)))

    def _paced_of(self, option: EnTuning) -> list[Way]:
        busy = self._busy(replace(option, **vars(HostTuning())))
        return [Way(steps) for steps in self._ways(option, [
            replace(each, phases=least.phases)
            for each, least in zip(busy, self._least_times(option))], few=True)]

    def _least_times(self, option: EnTuning) -> list[NicTimes]:
        share = ceil(self.site.trace.mini_batch / self.site.point.cluster.endpoints)
        return [least_times(self.site.trace.model, option, of, share, us)
                for of, us in zip(self._delivery(option), self._link_us(
                    self._tables(option), option.copied_rows, option.bags_once))]

    def in_words(self, option: EnTuning) -> tuple[str, ...]:
        """Return the chosen options in words, the tables that pool at their owner, and why unique
        delivery is impossible."""
        most = max(of.slots for of in self._delivery(replace(option, pool=POOLS[0])))
        owner = self._tables(option)
        return (*super().in_words(option), *pooled_in_words(owner, self.site.trace.model.tables),
                *[f"updated by the {option.update.upper()}s of the owners"] * (
                    bool(owner) and self.site.training),
                *([pooled_instead(most)] if most > MOST_INDICES else ()))

    def whole(self, choice: Choice) -> Built:
        """Return EN with the options of a choice, over all mini-batches and flights."""
        return super().whole(replace(choice, flights=self.site.point.flights))

    def best(self) -> Built:
        """Return EN with its best options. Patient packets are tried with these alone, which takes
        a run of NICs more."""
        found, point = super().best(), self.site.point
        if self.site.training or point.cluster.all_nics == 1 or "patient" in self.fixed:
            return found
        return self.pick([found, self.whole(Choice(
            point.flights, replace(found.tuning, patient=True)))])

    def pick(self, found: list[Built]) -> Built:
        """Return the fastest; the first of equally fast ones."""
        return min(found, key=lambda each: round(each.interval_us, 6))

    def _nic(self, tuning: EnTuning) -> NicPart:
        site = self.site
        part = en_nic(site, tuning)
        if site.training:
            part = with_updates(*nic_point(
                site.point, site.devices, tuning, self._tables(tuning)), site.trace,
                nic_devices(site.devices, tuning), site.work, part)
        return part

    def _fits(self, tuning: EnTuning) -> bool:
        """Return whether NICs hold every sample and can deliver: an index for each slot, or the
        vectors of a result.

        A NIC that serves several GPUs delivers a vector to each: it has no unique delivery.
        """
        if slots_of(self.site.nic_trace, self._tables(tuning),
                    tuning.copied_rows) > NicConfig.most_hold_vectors // 2:
            return False
        if tuning.deliver == "interaction":
            return nics_interact(self.site.trace.model)
        return tuning.deliver != "unique" or (self.site.point.cluster.gpus_per_nic == 1 and all(
            of.slots <= MOST_INDICES for of in self._delivery(replace(tuning, pool=POOLS[0]))))

    def _delivery(self, tuning: EnTuning) -> list[Delivery]:
        """Return the delivery of each mini-batch."""
        return self._delivered(tuning.copied_rows, self._tables(tuning), tuning.bags_once,
                               reads_own(self.site.point, tuning))

    def _reads(self, tuning: EnTuning) -> bool:
        """Return False for NICs that would read rows and have none to read: all of their tables
        pool at the owner, where GPUs read the rows, in the same way without this option."""
        if not tuning.reads or self.site.training:
            return True
        served = sum(rows > tuning.copied_rows for rows in self.site.trace.model.rows)
        return len(self._tables(tuning)) < served

    def _sees(self, tuning: EnTuning) -> bool:
        """Return whether NICs see all rows that they read."""
        try:
            check_seen(self.site, tuning)
        except BarError:
            return False
        return True

    def _ways(self, tuning: EnTuning, times: list[NicTimes], few: bool) -> list[list[Step]]:
        site = self.site
        numbers = site.work.extremes if few else range(len(times))
        own = self._delivery(tuning)
        return [[en(site.work.plain[n], site.devices, way, times[n], own[n], tuning)
                 for n in numbers] for way in sums(self.step_options, site.devices)]


def _longer(bound: Callable[[Choice], tuple[float, float]]
            ) -> Callable[[Choice], tuple[float, float]]:
    def found(choice: Choice) -> tuple[float, float]:
        us, alone = bound(choice)
        return GAIN * us, alone

    return found


def _tuning(point: Fields) -> EnTuning:
    """Return the point's options; an open option is on, except a resident kernel where bags pool
    at their owner."""
    fixed = fixed_of(EnTuning, point.system.fixed)
    return EnTuning(**{"ring": fixed.get("pool", POOLS[0]) == POOLS[0]} | fixed)


def _consistent(point: Fields) -> EnTuning:
    """Return options that a point leaves open; ``ValueError`` if there are none."""
    training, own = point.workload.training, _tuning(point)
    fixed = fixed_of(EnTuning, point.system.fixed)
    return start_of(own, open_variants(en_variants(training, pools=POOLS), fixed), training)
