"""Placement of a system's tables at a point, and the search for the fastest."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf

from host.placement.deal import PLACEMENTS
from host.placement.shard import Placement, ShardPlan
from host.systems import POOLS, UPDATES, Workload
from host.systems.tables import vector_bytes
from host.timing.clock import CYCLE_NS
from host.timing.cluster import row_bytes
from rtl.formats import BEAT_BYTES, DescriptorKind
from sim.evaluation.built import Built
from sim.evaluation.measure import busy_us
from sim.evaluation.nic import NicPart
from sim.evaluation.point import Point
from sim.evaluation.pooling import owner_tables, tables_of
from sim.evaluation.search import CLOSE
from sim.evaluation.site import Site
from sim.evaluation.store import Store
from sim.evaluation.trace import Trace, plan_of, without_small
from sim.evaluation.workloads import workloads
from sim.job.memory import node_bytes, too_large

__all__ = ["FIRST", "Placed", "counted", "held_bytes", "nic_us", "placed", "placements"]

FIRST, *_ = PLACEMENTS
"""Placement that every search measures first: that of the paper."""

_SHORTER = 0.98
"""Relative time of NICs by counts up to which NICs run with another placement."""

_AS_LONG = 1.02
"""The same where tables pool at their owner: the counts are of the network alone, but GPUs and the
NICs of the busiest owners may be the bottleneck."""


@dataclass(frozen=True)
class Placed:
    """A system with its best options under one placement.

    Members: ``point``, with the placement; ``site``, of the point; ``built`` and ``nic``, see
    :meth:`sim.evaluation.system.System.at`, None if the system cannot be built or is too slow;
    ``held``, bytes of each GPU; ``why``, the limit because of which the system cannot be built, or
    None.
    """

    point: Point
    site: Site
    built: Built | None = None
    nic: NicPart | None = None
    held: Sequence[int] = ()
    why: str | None = None

    @classmethod
    def of(cls, point: Point, site: Site, memory: int | None, below: float = inf,
           near: Built | None = None) -> "Placed":
        """Return the system at a site; ``memory``: bytes of a GPU, None for no limit; ``below``:
        interval from which on the system is too slow; ``near``: the system under another
        placement."""
        if why := point.kind.why_not_placed(site):
            return cls(point, site, why=why)
        if below < inf and not point.kind.reaches(site, below):
            return cls(point, site)
        built, nic = point.kind.at(site, near=near)
        held = held_bytes(site, built)
        return cls(point, site, built, nic, held, _too_large(site.trace, held, memory))

    @property
    def interval_us(self) -> float:
        """Time from one mini-batch to the next; infinite for a system that cannot be built or is
        too slow."""
        return inf if self.built is None or self.why else self.built.interval_us


def counted(point: Point, runs: Store | None = None) -> Site:
    """Return the site of a point; without a given placement, that of `FIRST`."""
    return Site.of(point.changed(placement=point.cluster.placement or FIRST), runs)


def placements(point: Point, trace: Trace, memory: int | None = None) -> list[str]:
    """Return the placements that a system may have, the same for every system.

    They are the given placement, or the `PLACEMENTS` whose plans differ and fit in ``memory`` bytes
    of a GPU. If no plan fits, `FIRST` remains, which states the limit.
    """
    if point.cluster.placement is not None:
        return [point.cluster.placement]
    plans: dict[tuple[Placement, ...], str] = {}
    for name in PLACEMENTS:
        plan = plan_of(point.changed(placement=name), trace)
        held = [gpu["bytes"] for gpu in node_bytes(trace.model, plan, "none")]
        if _too_large(trace, held, memory) is None:
            plans.setdefault(plan.tables, name)
    return [*plans.values()] or [FIRST]


def placed(point: Point, memory: int | None = None, runs: Store | None = None,
           below: float = inf) -> Placed:
    """Return a system with its best options and placement: the fastest of the points that it
    searches apart, see :meth:`sim.evaluation.system.System.apart`, each with :func:`_placed`.

    Parameters: ``point``; ``memory``, bytes of a GPU, None for no limit; ``runs``, store of NIC
    runs; ``below``, interval from which on the system is too slow.
    """
    found: list[Placed] = []
    for each in point.kind.apart(point):
        found.append(_placed(each, memory, runs, below))
        below = min(below, found[-1].interval_us)
    return min(found, key=lambda each: round(each.interval_us, 6))


def _placed(point: Point, memory: int | None, runs: Store | None, below: float) -> Placed:
    """Return a system with its best options and, unless its point gives a placement, its fastest
    placement.

    The first placement that can be built is searched in full. A GPU system is then searched in full
    with each placement that is not much slower at similar options, see
    :meth:`sim.evaluation.search.Search.beside_us`. NICs run with one further placement at most, the
    best by :func:`nic_us`, and only if the host thread is not the bottleneck. Where tables pool at
    their owner, it runs also if the counts are about equal. The parameters are those of
    :func:`placed`.

    Raises ``ValueError`` if the system cannot be measured for any reason other than a limit.
    """
    start = counted(point, runs)
    points = [point.changed(placement=name) for name in placements(point, start.trace, memory)]
    left = [(each, start if each == start.point else Site.of(each, runs)) for each in points]
    found: list[Placed] = []
    while left and (not found or found[-1].why):
        found.append(Placed.of(*left.pop(0), memory, below))
    if left and found[-1].built is not None:
        first, below = found[-1].built, found[-1].interval_us
        promising = _promising(found[-1].site, first, [site for _, site in left])
        found += [Placed.of(each, site, memory, below, first)
                  for each, site in left if site in promising]
    return min(found, key=lambda each: round(each.interval_us, 6))


def held_bytes(site: Site, built: Built) -> list[int]:
    """Return the bytes of each GPU with the copies of tables that were chosen.

    NICs that read rows themselves need padded rows and, at each owner, the addresses of all rows of
    a hashed table (:class:`sim.job.row_places.RowPlaces`). They read no row of a copied table.
    """
    model, plan = site.trace.model, _plan(site, built)
    if not getattr(built.tuning, "reads", False):
        return [gpu["bytes"] for gpu in node_bytes(model, plan, "none")]
    held = [4 * model.mlp_parameters] * plan.nodes
    for table, dimension in zip(plan.tables, model.table_dimensions):
        everywhere = table.kind == DescriptorKind.REPLICATED
        size = table.rows * row_bytes(dimension if everywhere else model.width)
        for node in range(plan.nodes) if everywhere else range(
                table.owner, table.owner + table.owners):
            held[node] += size
    return held


def nic_us(site: Site, copied_rows: int = 0, pool: str = POOLS[0], once: bool = False,
           update: str = UPDATES[0], wire: str = "float32") -> float:
    """Return the time that NICs need for a mini-batch, from counts: that of the busiest link,
    NIC or PCIe link. It judges placements before NICs run.

    An owner sends each distinct row of a requester's share, a beat per cycle, and reads each
    distinct row of the mini-batch. Where tables pool at their owner, the network link counts alone.

    ``copied_rows``: NICs do not serve tables of at most this many rows. ``pool``, ``update``: of
    `host.systems.POOLS` and `host.systems.UPDATES`. ``once``: whether repeated bags are not sent.
    ``wire``: format of vectors between nodes.
    """
    more = once, update, wire
    if owner := owner_tables(site.point, site.nic_trace, pool, copied_rows, *more):
        _, busiest = tables_of(site.point, site.nic_trace, owner, copied_rows, *more)
        return busiest["bytes"] / (site.devices.network.bandwidth_gbit_s / 8 * 1e3)
    trace = without_small(site.trace, copied_rows)
    work = workloads(trace, plan_of(site.point, trace))
    return max(_nic_us(site, work.one_copied(0, number), wire) for number in work.extremes)


def _nic_us(site: Site, w: Workload, wire: str) -> float:
    devices, size = site.devices, vector_bytes(w, wire)
    count, each = site.point.cluster.all_nics, site.point.cluster.gpus_per_nic
    asked = w.requested.reshape(count, each, count, each).sum(axis=(1, 3))
    rows = w.unique.reshape(count, each).sum(axis=1)
    beats = ceil(size / BEAT_BYTES)
    return max(float(devices.nic_links.link_us(size * asked.T).max()),
               float(asked.sum(axis=0).max()) * beats * CYCLE_NS / 1e3,
               float(rows.max()) * size / (devices.pcie.bandwidth_gb_s * 1e3))


def _promising(site: Site, built: Built, others: Sequence[Site]) -> list[Site]:
    """Return the ``others`` at which a system may be faster than ``built``, its best at a site."""
    if site.point.kind.has_nics:
        # The host thread does the same work under every placement.
        if busy_us(built.steps, built.per_graph).get("cpu", 0.0) >= _SHORTER * built.interval_us:
            return []
        chosen = tuple(getattr(built.tuning, name, value) for name, value in (
            ("copied_rows", 0), ("pool", POOLS[0]), ("bags_once", False), ("update", UPDATES[0]),
            ("wire", "float32")))
        copied = chosen[0] or None
        own = plan_of(site.point, site.nic_trace, copied)
        others = [each for each in others
                  if plan_of(each.point, each.nic_trace, copied).tables != own.tables]
        if not others:
            return []
        us = [nic_us(each, *chosen) for each in others]
        least = min(us)
        pooled = owner_tables(site.point, site.nic_trace, chosen[1], chosen[0], *chosen[2:])
        most = (_AS_LONG if pooled else _SHORTER) * nic_us(site, *chosen)
        return [others[us.index(least)]] if least <= most else []
    return [each for each in others
            if each.point.kind.search(each, None).beside_us(built) <= CLOSE * built.interval_us]


def _plan(site: Site, built: Built) -> ShardPlan:
    """Return the placement over GPUs, with the copies that were chosen."""
    copied = getattr(built.tuning, "copied_rows", site.point.system.copied_rows)
    return site.work.one_copied(copied, 0).plan


def _too_large(trace: Trace, held: Sequence[int], memory: int | None) -> str | None:
    return None if memory is None else too_large(trace.model, held, memory)
