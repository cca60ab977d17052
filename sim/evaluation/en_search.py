"""Search for EN's fastest options."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from math import ceil

from host.systems import (
    BAG_PACES,
    POOLS,
    Delivery,
    EnTuning,
    HostTuning,
    Step,
    Variants,
    Way,
    en,
    en_variants,
    every,
)
from host.systems.nic_times import NicTimes
from host.timing.network import MTUS
from host.wire.indices import MOST_INDICES, pooled_instead
from rtl.config import NicConfig
from sim.evaluation.built import Built, Choice, cost_of, fastest, lowest
from sim.evaluation.en_nics import check_seen, en_nic, nic_devices, nic_point, nics_of, reads_own
from sim.evaluation.gradient_path import with_updates
from sim.evaluation.least import deliveries, least_times, link_bounds, with_phases
from sim.evaluation.nic import NicPart, busy_times
from sim.evaluation.pooling import owner_tables, pooled_in_words, slots_of, why_not_weighted
from sim.evaluation.search import GAIN, Search, sums
from sim.evaluation.site import Site
from sim.evaluation.system import nics_interact
from sim.evaluation.trace import copied_all, tally_of
from sim.job.row_places import BarError

__all__ = ["EnSearch"]

_Cost = Callable[[Choice], tuple[float, float]]

OFTEN = 0.5
"""Least share of lookups in repeated bags at which EN considers to send repeated bags once. The
hosts of these runs are in Python, which takes longer to simulate."""


class EnSearch(Search):
    """Search of EN. The NICs depend on the option, so that a round changes few options.

    NICs hold the slots of a sample in tables that GPUs do not copy. Delivery of unique vectors
    requires an index for each slot of a share, and delivery of interactions a model of
    `nics_interact`, unless the point fixes it. NICs read rows themselves only if they see all their
    tables; ``ValueError`` if the point requires it and they do not.

    Parameters: ``site``, ``all_reduce``; ``given``, NICs for every option, None to run the NICs of
    each option; ``start``, option of another site at which the search begins.
    """

    kind = EnTuning
    changes = 1

    def __init__(self, site: Site, all_reduce: bool, given: NicPart | None = None,
                 start: EnTuning | None = None):
        super().__init__(site, all_reduce)
        self._start = start
        self._run = cache(lambda tuning: self._nic(tuning, self._enough_us(tuning))
                          if given is None else given)
        self._measured = given is None and not site.training
        self._busy = cache(lambda tuning: busy_times(*nics_of(site, tuning), site.runs,
                                                     self._enough_us(tuning)))
        self._paced = cache(self._paced_of)
        self._delivered = cache(partial(deliveries, site.point, site.trace))
        self._owner = cache(partial(owner_tables, site.point, site.nic_trace))
        self._link_us = cache(partial(link_bounds, site))
        self._every: list[EnTuning] = []
        self._of_nics: dict[EnTuning, list[EnTuning]] = {}

    def nic(self, tuning: EnTuning) -> NicPart:
        """Return the NICs of an option; they do not depend on the options of the host.

        The search compares options with fewer mini-batches in the NICs, where these are no
        bottleneck.
        """
        return self._nic(_nics(tuning))

    def _enough_us(self, tuning: EnTuning) -> float:
        """Return a lower bound of the interval with the NICs of an option, for every option of the
        host."""
        return min(self._bound(Choice(self.site.point.flights, each))[0]
                   for each in self._hosts(tuning))

    def _hosts(self, tuning: EnTuning) -> list[EnTuning]:
        """Return the options that have the NICs of an option."""
        if not self._of_nics:
            for each in self.options():
                self._of_nics.setdefault(_nics(each), []).append(each)
        return self._of_nics.get(tuning, [tuning])

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
        site, wire = self.site, self.fixed.get("wire", "float32")
        return tuple(sorted(set().union(*(
            owner_tables(site.point, site.nic_trace, pool, once=once, wire=wire)
            for once in (False, True)[:1 + self._often()]))))

    def _tables(self, option: EnTuning) -> tuple[int, ...]:
        """Return the tables of an option that pool at their owner."""
        return self._owner(option.pool, option.copied_rows, option.bags_once, option.update,
                           option.wire)

    def options(self) -> Sequence[EnTuning]:
        """Return the options that EN may choose from at this site."""
        if not self._every:
            site = self.site
            # A pace that is no longer than a call is none.
            call = site.devices.software.launch_call_us
            found = [each for each in every(EnTuning(**self.fixed), self.variants, site.training)
                     if "pace_us" in self.fixed or (not 0 < each.pace_us <= call and (
                         each.pace_us not in BAG_PACES or each.pool != POOLS[0]))]
            found = [each for each in found if self.fits(each)] or found
            found = [each for each in found if self.why_not_weighted(each) is None] or found
            found = [each for each in found if self._reads(each)] or found
            if not any(map(self._sees, found)):
                check_seen(site, found[0])
            self._every = [each for each in found if self._sees(each)]
        return self._every

    def seeds(self) -> Sequence[EnTuning]:
        """Return, for each way to read rows, place of pooling and of updates, and number of
        threads, the option with the least lower bound, which requires no run of NICs; or the
        option that is most like the given start."""
        if self._start is not None:
            start = vars(self._start).items()
            return [min(self.options(), key=lambda each: len(vars(each).items() - start))]
        flights, found = self.site.point.flights, {}
        for each in self.options():
            found.setdefault((each.ring, each.reads, each.pool, each.update, each.threads),
                             []).append(each)
        choices = ([Choice(flights, each) for each in group] for group in found.values())
        return [lowest(group, self._floor, self._bound).option for group in choices]

    def near(self, option: EnTuning, changes: int = 1) -> Sequence[EnTuning]:
        """Return the option, and options that differ from it in one alternative, or by the next set
        of copied tables, or by one of the next two paces."""
        allowed = set(self.options())
        rows, paces = (sorted({getattr(each, name) for each in allowed})
                       for name in ("copied_rows", "pace_us"))
        return [each for each in super().near(option, changes) if each in allowed and abs(
            rows.index(each.copied_rows) - rows.index(option.copied_rows)) <= 1 and abs(
                paces.index(each.pace_us) - paces.index(option.pace_us)) <= 2]

    def ways(self, option: EnTuning, few: bool = False) -> list[list[Step]]:
        """Return the steps for each all-reduce of the MLPs' gradients."""
        return self._ways(option, self._run(_nics(option)).times, few)

    def least_ways(self, option: EnTuning) -> list[list[Step]]:
        """Return steps with the lower bound :func:`least_times` of the NICs."""
        return self._ways(option, self._least_times(option), few=True)

    @property
    def costs(self) -> tuple[_Cost, ...]:
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
        busy = self._busy(_nics(option))
        times = with_phases(busy, self._least_times(option))
        return [Way(steps) for steps in self._ways(option, times, few=True)]

    def _least_times(self, option: EnTuning) -> list[NicTimes]:
        share = ceil(self.site.trace.mini_batch / self.site.point.cluster.endpoints)
        return [least_times(self.site.trace.model, option, of, share, us)
                for of, us in zip(self._delivery(option), self._link_us(
                    self._tables(option), option.copied_rows, option.bags_once, option.wire))]

    def in_words(self, option: EnTuning) -> tuple[str, ...]:
        """Return the chosen options in words, the tables that pool at their owner, and why unique
        delivery is impossible."""
        most = max(of.most("slots") for of in self._delivery(option))
        owner = self._tables(option)
        return (*super().in_words(option), *pooled_in_words(
                    owner, self.site.trace.model.tables,
                    option.update if self.site.training else None),
                *([pooled_instead(most)] if most > MOST_INDICES else ()))

    def whole(self, choice: Choice) -> Built:
        """Return EN with the options of a choice, over all mini-batches and flights."""
        return super().whole(replace(choice, flights=self.site.point.flights))

    def best(self) -> Built:
        """Return EN with its best options, with which patient and longer packets are tried last."""
        found, point = super().best(), self.site.point
        if self.site.training or point.cluster.all_nics == 1:
            return found
        names = ("patient", "jumbo")[:1 + (point.cluster.mtu > MTUS[0])]
        packets = [{name: True} for name in names if name not in self.fixed]
        if len(packets) > 1:
            packets.append(dict.fromkeys(names, True))
        return self.pick([found, *(self.whole(Choice(
            point.flights, replace(found.tuning, **each))) for each in packets)])

    def pick(self, found: list[Built]) -> Built:
        """Return the fastest; the first of equally fast ones."""
        return min(found, key=lambda each: round(each.interval_us, 6))

    def _nic(self, tuning: EnTuning, enough: float = 0.0) -> NicPart:
        site = self.site
        part = en_nic(site, tuning, enough)
        if site.training:
            part = with_updates(*nic_point(
                site.point, site.devices, tuning, self._tables(tuning)), site.trace,
                nic_devices(site.devices, tuning), site.work, part)
        return part

    def fits(self, tuning: EnTuning) -> bool:
        """Return whether NICs hold every sample and can deliver: an index for each slot, or the
        vectors of a result. NICs that sum gradients, of tables that pool at the requester, have
        float32.

        A NIC that serves several GPUs delivers a vector to each: it has no unique delivery.
        """
        if slots_of(self.site.nic_trace, self._tables(tuning),
                    tuning.copied_rows) > NicConfig.most_hold_vectors // 2:
            return False
        if self.site.training and tuning.wire != "float32" and not self._all_at_owner(tuning):
            return False
        if tuning.deliver == "interaction":
            return nics_interact(self.site.trace.model)
        return tuning.deliver != "unique" or (self.site.point.cluster.gpus_per_nic == 1 and all(
            of.most("slots") <= MOST_INDICES for of in self._delivery(tuning)))

    def why_not_weighted(self, tuning: EnTuning) -> str | None:
        """Return why NICs do not pool the weighted bags of an option, None if they need not."""
        return None if tuning.deliver == "unique" else why_not_weighted(
            self.site.trace, self._tables(tuning), tuning.copied_rows)

    def _delivery(self, tuning: EnTuning) -> list[Delivery]:
        """Return the delivery of each mini-batch."""
        return self._delivered(tuning.copied_rows, self._tables(tuning), tuning.bags_once,
                               reads_own(self.site.point, tuning))

    def _reads(self, tuning: EnTuning) -> bool:
        """Return False for NICs that would read rows and have none to read: all of their tables
        pool at the owner, where GPUs read the rows, in the same way without this option."""
        if not tuning.reads or self.site.training:
            return True
        return not self._all_at_owner(tuning)

    def _all_at_owner(self, tuning: EnTuning) -> bool:
        """Return whether all tables that NICs serve pool at their owner."""
        served = sum(rows > tuning.copied_rows for rows in self.site.trace.model.rows)
        return len(self._tables(tuning)) == served

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


def _nics(tuning: EnTuning) -> EnTuning:
    """Return the options of NICs, without those of the host."""
    return replace(tuning, **vars(HostTuning()))


def _longer(bound: _Cost) -> _Cost:
    def found(choice: Choice) -> tuple[float, float]:
        us, alone = bound(choice)
        return GAIN * us, alone

    return found
