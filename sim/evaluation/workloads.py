"""Work of each mini-batch of a trace: lookups, traffic, sums of gradients, and updated rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from host.batching import REPEATS, MiniBatch
from host.batching.repeats import sent_bags
from host.dlrm.formats import in_lanes
from host.once import once
from host.placement.reduction import Reduction, reduction
from host.placement.sets import NodeCaches
from host.placement.shard import ShardPlan, key_hash
from host.samples import first_lookups
from host.systems import Workload, workload_of
from host.systems.bl_tuned import Tuning, exchanged
from host.systems.tables import vector_bytes
from host.timing.network import IP_BYTES, MTUS
from rtl.config import LANES, NicConfig, beats_of, packing_of, partials_in
from rtl.formats import BEAT_BYTES, RECORDS_PER_BEAT, EmberHeader
from sim.evaluation.trace import Trace, tally_of
from sim.job.settings import Runtime
from sim.offline.bag_gradients import BagTraffic

__all__ = ["Updates", "Workloads", "all_reduce_traffic", "gradient_traffic", "reductions",
           "software_traffic", "totalled", "updates", "updates_of_trace", "workloads"]


class Workloads:
    """Work of each measured mini-batch of a trace, for the nodes of a plan. Compared by identity.
    """

    def __init__(self, trace: Trace, plan: ShardPlan):
        self._trace, self._plans = trace, {0: plan}
        self._made: dict[tuple[int, int], Workload] = {}

    @property
    def plain(self) -> list[Workload]:
        """Each mini-batch with the placement that all systems share."""
        return self.copied(0)

    @property
    def extremes(self) -> tuple[int, ...]:
        """Numbers of the mini-batches with the most and the least similarity. The graph algorithm
        forms similar mini-batches first. In file order, any mini-batch is representative."""
        count = len(self._trace.measured)
        return (0,) if self._trace.of.batching == "file" else tuple(dict.fromkeys((0, count - 1)))

    def copied(self, rows: int) -> list[Workload]:
        """Each mini-batch with tables of at most ``rows`` rows copied to every node and the others
        placed again; 0 copies no table."""
        return [self.one_copied(rows, number) for number in range(len(self._trace.measured))]

    def one_copied(self, rows: int, number: int) -> Workload:
        """Mini-batch ``number`` of :meth:`copied`."""
        if rows not in self._plans:
            self._plans[rows] = self._plans[0].with_copies(rows)
        if (rows, number) not in self._made:
            plan = self._plans[rows]
            self._made[rows, number] = workload_of(
                self._trace.measured[number].samples, self._trace.model, plan,
                tally_of(self._trace, number, plan.nodes))
        return self._made[rows, number]


@once
def workloads(trace: Trace, plan: ShardPlan) -> Workloads:
    """Return the work of each measured mini-batch for the nodes of ``plan``."""
    return Workloads(trace, plan)


@once
def reductions(trace: Trace, plan: ShardPlan, config: NicConfig, gpus: bool = False,
               repeats: str = REPEATS[0]) -> tuple[Reduction, ...]:
    """Return the sums of each measured mini-batch of a trace; with ``gpus``, of the tables that
    pool at their requester. ``repeats``: repeated bags whose gradients GPUs add, one of
    `host.batching.repeats.REPEATS`."""
    kept = (plan.owner_pooled == 0) | (not gpus)
    return tuple(reduction(sent_bags(batch.samples, plan.nodes, repeats).of_tables(kept), plan,
                           config) for batch in trace.measured)


@once
def bag_traffic(trace: Trace, plan: ShardPlan, config: NicConfig, runtime: Runtime,
                repeats: str = REPEATS[0], wire: str = "float32") -> tuple[BagTraffic, ...]:
    """Return the bags with gradients of each measured mini-batch, where GPUs update the rows;
    ``repeats``: as of :func:`reductions`; ``wire``: format of gradients.
    """
    width = in_lanes(trace.model, wire).width
    return tuple(BagTraffic.of(sent_bags(batch.samples, plan.nodes, repeats), plan, config,
                               runtime, width) for batch in trace.measured)


@dataclass(frozen=True)
class Updates:
    """Updated rows, ``rows``, and updated rows that miss the cache, ``misses``.

    Both ``[mini-batches, owners]``.
    """

    rows: np.ndarray
    misses: np.ndarray

    def to_json(self) -> dict[str, float]:
        """Return both for the mean mini-batch, summed over nodes."""
        return {name: float(counts.sum(axis=1).mean())
                for name, counts in (("rows", self.rows), ("misses", self.misses))}


@once
def updates_of_trace(trace: Trace, plan: ShardPlan, rows: int, ways: int,
                     policy: str = "lru", gpus: bool = False) -> Updates:
    """Return :func:`updates` of the measured mini-batches of a trace."""
    return updates(trace.batches, range(trace.warmup, len(trace.batches)), plan, rows, ways, policy,
                   gpus)


def updates(batches: Sequence[MiniBatch], measured: Iterable[int], plan: ShardPlan, rows: int,
            ways: int, policy: str = "lru", gpus: bool = False) -> Updates:
    """Count the rows that each measured mini-batch updates, and those that the cache has evicted.

    The forward pass looks up every key in its owner's local cache. When the gradients arrive, a
    later lookup may have evicted the row. The count uses the accesses in sample order and the NIC's
    sets, like ``sim hitrate``. ``update_misses`` of ``sim train`` is the same count in RTL.

    Parameters
    ----------
    batches: mini-batches, starting with empty caches. measured: numbers of the counted
        mini-batches.
    plan: placement of the tables; the cache holds no rows of tables that pool at their owner.
    rows, ways, policy: cache of each node; 0 rows disable it.
    gpus: whether GPUs update the rows of tables that pool at their owner, which do not count.
    """
    looked_up = plan.owner_pooled == 0
    caches = NodeCaches(rows // ways, ways, plan.nodes, policy) if rows else None
    counted, found = frozenset(measured), []
    for number, batch in enumerate(batches):
        samples = batch.samples.of_tables(looked_up | (not gpus))
        first = first_lookups(samples)
        tables, of_table, keys = samples.tables[first], samples.rows[first], samples.keys[first]
        owner, hashes = plan.owner_of(tables, of_table), key_hash(tables, of_table)
        held = np.zeros(len(keys), bool)
        if caches is not None:
            entered = looked_up[tables]
            caches.access(owner[entered], hashes[entered], keys[entered])
        if number in counted:
            if caches is not None:
                held = caches.held(owner, hashes, keys)
            found.append([np.bincount(of, minlength=plan.nodes) for of in (owner, owner[~held])])
    return Updates(*(np.array(counts) for counts in zip(*found)))


Traffic = dict[str, dict[str, float]]


_PLAIN = Tuning(dedupe=False)


def software_traffic(work: Sequence[Workload], training: bool, tuning: Tuning = _PLAIN,
                     gpus: int = 1, mtu: int = MTUS[0]) -> Traffic:
    """Return bytes and packets that software exchanges per mini-batch between nodes of ``gpus``
    GPUs, all nodes. ``mtu``: bytes of an IP packet."""
    kinds = {"lookups": [], "vectors": []} | ({"gradients": []} if training else {})
    for w in work:
        keys, vectors = exchanged(w, tuning)
        kinds["lookups"].append(keys)
        kinds["vectors"].append(vectors)
        if training:
            kinds["gradients"].append(vectors)
    return {kind: _count(np.array(messages), gpus, mtu) for kind, messages in kinds.items()}


def gradient_traffic(work: Sequence[Workload], reduced: Sequence[Reduction] | None = None,
                     bags: Sequence[BagTraffic] = (),
                     payload_beats: int = NicConfig.net_payload_beats) -> dict[str, float]:
    """Return bytes and packets of gradients per mini-batch: of bags without headers, or with
    headers of the partial sums of ``reduced`` and of the ``bags`` with gradients.
    ``payload_beats``: beats behind the header of a packet."""
    if reduced is None:
        return _count(np.array([vector_bytes(w) * w.bags for w in work]))
    found = {"bytes": 0.0, "packets": 0.0}
    for w, sums in zip(work, reduced):
        size, packets = _partial_payload(sums.partials, w.model.width, payload_beats)
        crossing = ~np.eye(w.nodes, dtype=bool)
        found["bytes"] += float(size[crossing].sum())
        found["packets"] += float(packets[crossing].sum())
    for each in bags:
        found["bytes"] += float(each.payload.sum())
        found["packets"] += float(each.packets.sum())
    return {unit: value / len(work) for unit, value in found.items()}


def _partial_payload(partials: np.ndarray, width: int,
                     payload_beats: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes and the number of full packets of ``partials``, vectors of ``width`` values.
    """
    packing = packing_of(min(width, LANES))
    beats, fit = partials * beats_of(width), partials_in(payload_beats, packing)
    whole, rest = np.divmod(beats, fit)

    def payload(count: np.ndarray | int) -> Any:
        return -(-count // RECORDS_PER_BEAT) - -count // (1 << packing)

    packets = whole + (rest > 0)
    return (EmberHeader.size // 8 * packets
            + BEAT_BYTES * (whole * payload(fit) + payload(rest))), packets


def all_reduce_traffic(work: Sequence[Workload], gpus: int = 1,
                       mtu: int = MTUS[0]) -> dict[str, float]:
    """Return bytes and packets between nodes of ``gpus`` GPUs of a ring all-reduce of the MLPs'
    gradients. ``mtu``: bytes of an IP packet."""
    w = work[0]
    leave = w.nodes // gpus if w.nodes > gpus else 0  # endpoints whose successor is at another node
    size = 2 * (w.nodes - 1) * 4 * w.model.mlp_parameters * leave // w.nodes
    return {"bytes": float(size), "packets": float(-(-size // (mtu - IP_BYTES)))}


def totalled(traffic: Traffic) -> Traffic:
    """Return ``traffic`` with the sum of all kinds as ``total``."""
    return traffic | {"total": {unit: sum(kind[unit] for kind in traffic.values())
                                for unit in ("bytes", "packets")}}


def _count(messages: np.ndarray, gpus: int = 1, mtu: int = MTUS[0]) -> dict[str, float]:
    """Count messages between nodes, bytes ``[mini-batches, from, to]``, per mini-batch."""
    node = np.arange(messages.shape[1]) // gpus
    crossing = messages * (node[:, None] != node)
    return {"bytes": float(crossing.sum() / len(messages)),
            "packets": float((-(-crossing // (mtu - IP_BYTES))).sum() / len(messages))}
