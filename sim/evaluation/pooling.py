"""Nodes that pool the bags of each table at a point: the choice, and the traffic."""

from dataclasses import dataclass

import numpy as np

from host.dlrm.formats import in_lanes
from host.model import Model, columns_of, rows_of_block
from host.once import once
from host.placement.pooling import ForeignBags, PoolBytes, Wire, choose_pools, pool_obstacles
from host.placement.shard import ShardPlan
from host.systems import POOLS, UPDATES
from rtl.config import NicConfig, preset
from rtl.formats import TAG_BITS, DescriptorKind, PoolPlace
from sim.evaluation.fields import Fields
from sim.evaluation.trace import Trace, plan_of, tally_of, without_small
from sim.job.pools import segments_of_samples, slots_with, wire_of
from sim.job.settings import apply_settings
from sim.nic_cpp.config import WideConfig

__all__ = ["least_bytes", "owner_tables", "pooled_in_words", "segments_of", "slots_of",
           "tables_of", "why_not_weighted"]


@dataclass(frozen=True)
class _Nic:
    """Sizes of a NIC that decide about pooling. Members: ``config``; ``sets``, of the remote cache,
    0 without it; ``gradients``, whether the gradients of bags travel to their owners."""

    config: NicConfig
    sets: int
    gradients: bool = False

    @classmethod
    def of(cls, point: Fields, update: str = UPDATES[0]) -> "_Nic":
        """Return the sizes at a point, whose NICs have as many nodes as it needs. ``update``: of
        `UPDATES`, in training."""
        training = point.workload.training
        config, _ = apply_settings(WideConfig.of(preset(point.workload.preset)),
                                   list(point.system.settings))
        ways = config.remote_cache_ways
        return cls(config.with_fields(nodes=max(config.nodes, point.cluster.all_nics)),
                   0 if training or point.system.remote_cache == 0 else
                   config.remote_cache_rows // ways, training and update == UPDATES[0])


@once
def _foreign(trace: Trace, plan: ShardPlan, nic: _Nic, once: bool) -> ForeignBags:
    """Return the foreign bags of all mini-batches of a trace; ``once``: without repeated bags."""
    return ForeignBags(plan, (batch.samples for batch in trace.batches),
                       "neighbours" if once else "send", nic.config if nic.gradients else None)


@once
def _chosen(trace: Trace, plan: ShardPlan, nic: _Nic, pool: str, once: bool,
            wire: str) -> tuple[int, ...]:
    foreign = _foreign(trace, plan, nic, once)
    obstacles = pool_obstacles(plan, nic.config, foreign.longest.tolist())
    if pool == "owner":
        return tuple(table for table, why in enumerate(obstacles) if why is None)
    pools = choose_pools(foreign, _wire_of(nic.config, trace.model, wire), obstacles, nic.sets,
                         nic.config.remote_cache_ways, plan.weighted)
    return tuple(table for table, place in enumerate(pools) if place == PoolPlace.OWNER)


def owner_tables(point: Fields, trace: Trace, pool: str, copied_rows: int = 0,
                 once: bool = False, update: str = UPDATES[0],
                 wire: str = "float32") -> tuple[int, ...]:
    """Return the tables that pool at their owner, numbered without copied tables. Tables with
    weights are among them if they can be, unless all tables pool at the requester.

    NICs that serve several GPUs pool at the requester.

    Parameters
    ----------
    point, trace: point of the system, and the mini-batches that its NICs run.
    pool: one of `host.systems.POOLS`.
    copied_rows: tables of at most this many rows are copied to every GPU.
    once: whether repeated bags are not sent.
    update: place that updates their rows in training, one of `host.systems.UPDATES`.
    wire: format of vectors between nodes, one of `host.systems.WIRES`.
    """
    if pool == POOLS[0] or point.cluster.endpoints == 1 or point.cluster.gpus_per_nic > 1:
        return ()
    left = without_small(trace, copied_rows) if copied_rows else trace
    return _chosen(left, plan_of(point, left), _Nic.of(point, update), pool, once, wire)


def why_not_weighted(trace: Trace, owner: tuple[int, ...], copied_rows: int = 0) -> str | None:
    """Return why NICs that pool cannot have these tables that pool at their ``owner``, numbered
    without copied tables: NICs do not multiply by weights. None if they can."""
    rows, weighted = trace.model.rows, trace.model.weighted_tables
    kept = [table for table, of in enumerate(rows) if of > copied_rows]
    left = [table for number, table in enumerate(kept)
            if table in weighted and number not in owner]
    if not left:
        return None
    return (f"table {left[0]} has weights, which NICs do not multiply: its bags must pool at its "
            f"owner, or GPUs must pool (deliver=unique)")


def pooled_in_words(owner: tuple[int, ...], tables: int,
                    update: str | None = None) -> tuple[str, ...]:
    """Return notes on the tables ``owner`` of a number of tables, and on the place that updates
    them in training; empty without any."""
    return (f"{len(owner)} of {tables} tables pool at the owner",
            *([f"updated by the {update.upper()}s of the owners"] if update else [])
            ) if owner else ()


def tables_of(point: Fields, trace: Trace, owner: tuple[int, ...], copied_rows: int = 0,
              once: bool = False, update: str = UPDATES[0],
              wire: str = "float32") -> tuple[list[dict], dict]:
    """Return the traffic of each table, and of the busiest direction of the busiest node.

    Parameters
    ----------
    owner: tables that pool at their owner, numbered without copied tables. The others are as of
        :func:`owner_tables`; with ``once``, bags and bytes are those that are sent.

    Returns
    -------
    For each table, per mini-batch: ``table``, first and last of the ``columns`` of a slice and of
    the ``rows`` of a block, ``pool`` (``copied`` for tables of at most ``copied_rows`` rows),
    ``foreign_bags``, ``foreign_keys``, ``distinct_foreign_rows`` (added over the shares),
    ``requester_bytes`` and ``owner_bytes`` (payload if it pools there), in training
    ``requester_gradients`` and ``owner_gradients`` (their gradients with headers, where the GPU
    updates the rows at the owner). And ``node``, ``direction`` (``out`` or ``in``) and ``bytes``.
    The remote caches are LRU and begin empty.
    """
    left = without_small(trace, copied_rows) if copied_rows else trace
    plan, nic, count = plan_of(point, left), _Nic.of(point, update), len(trace.batches)
    foreign = _foreign(left, plan, nic, once)
    names = (*_TABLE, *_GRADIENTS * nic.gradients)
    pools = plan.with_owner_tables(owner)
    traffic = foreign.bytes_of(
        _wire_of(nic.config, left.model, wire), [table.pool for table in pools.tables],
        nic.sets, nic.config.remote_cache_ways)
    found, number = [], iter(range(len(plan.tables)))
    for table, rows in enumerate(trace.model.rows):
        values = dict.fromkeys(names, 0.0)
        pool = "copied"
        if rows > copied_rows:
            at = next(number)
            pool = pools.tables[at].pool.name.lower()
            values = {name: float(each[at]) / count for name, each in zip(names, (
                foreign.bags, foreign.keys, foreign.rows, traffic.requester_bytes,
                traffic.owner_bytes, traffic.requester_gradients, traffic.owner_gradients))}
        found.append({"table": trace.model.originals[table],
                      "columns": columns_of(trace.model, table),
                      "rows": rows_of_block(trace.model, table), "pool": pool, **values})
    return found, _busiest(left, pools, foreign, traffic, "new_bags" if once else "bags", wire)


_TABLE = ("foreign_bags", "foreign_keys", "distinct_foreign_rows", "requester_bytes", "owner_bytes")
_GRADIENTS = ("requester_gradients", "owner_gradients")


def _busiest(trace: Trace, plan: ShardPlan, foreign: ForeignBags, traffic: PoolBytes,
             split: str, wire: str) -> dict:
    """Return the busiest direction of the busiest node, per mini-batch.

    The bytes of a table are split over pairs of nodes like its distinct foreign rows in the
    measured mini-batches, or like its foreign bags, the member ``split`` of `Counts`, if it pools
    at its owner. A vector returns for each request.
    """
    nodes, owner = plan.nodes, plan.owner_pooled > 0
    moved = np.sum([np.where(owner, *(_pairs(trace, plan, number, name)
                                      for name in (split, "distinct")))
                    for number in range(len(trace.measured))], axis=0)
    total = np.maximum(moved.sum(axis=(0, 1)), 1)
    answered = (_vector_bytes(trace, plan, wire) + TAG_BITS // 8) * np.where(
        owner, foreign.bags, traffic.missed_rows)
    # Gradients travel like lookups.
    asked = np.where(owner, traffic.owner_bytes + traffic.owner_gradients,
                     traffic.requester_bytes + traffic.requester_gradients) - answered
    asks, answers = ((moved * each / total).sum(axis=2) / len(trace.batches)
                     for each in (asked, answered))
    ways = np.array([asks.sum(axis=1) + answers.sum(axis=0),
                     asks.sum(axis=0) + answers.sum(axis=1)])
    way, node = np.unravel_index(ways.argmax(), (2, nodes))
    return {"node": int(node), "direction": ("out", "in")[way], "bytes": float(ways.max())}


def _wire_of(config: NicConfig, model: Model, wire: str) -> Wire:
    """Return the vectors of ``model`` in the format ``wire``, and the packets of a NIC."""
    seen = in_lanes(model, wire)
    return wire_of(config, seen.width, seen.beats)


def _vector_bytes(trace: Trace, plan: ShardPlan, wire: str) -> np.ndarray:
    """Return the bytes of a vector of each table at its pool place, without tag: int64
    ``[tables]``. ``wire``: format of its values."""
    seen = in_lanes(trace.model, wire)
    of = Wire(4 * seen.width, bag_beats=seen.beats)
    return np.where(plan.owner_pooled > 0, of.bag_bytes, of.vector_bytes)


def least_bytes(point: Fields, trace: Trace, number: int, owner: tuple[int, ...],
                copied_rows: int = 0, once: bool = False, wire: str = "float32") -> int:
    """Return a lower bound of the bytes of vectors, without tags, that reach a node over the
    network in a measured mini-batch, for the node that receives the most.

    The vectors belong to the foreign bags of the tables ``owner``, and to the distinct foreign rows
    of other tables that exceed the remote cache. The parameters are those of :func:`tables_of`;
    ``once``: whether repeated bags are not sent.
    """
    left = without_small(trace, copied_rows) if copied_rows else trace
    nic = _Nic.of(point)
    bags, rows = _arriving(left, plan_of(point, left).with_owner_tables(owner), number,
                           "new_bags" if once else "bags", wire)
    cached = nic.sets * nic.config.remote_cache_ways
    size = 4 * in_lanes(left.model, wire).width
    return int((bags + size * np.maximum(rows - cached, 0)).max())


@once
def _arriving(trace: Trace, plan: ShardPlan, number: int,
              bags: str, wire: str) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each requester, the bytes of the vectors of foreign bags of owner-pooled tables,
    and the distinct foreign rows of other tables: int64 ``[nodes]``. ``bags``: the bags counted, a
    member of `Counts`. ``wire``: format of values."""
    owner = plan.owner_pooled > 0
    return tuple((_pairs(trace, plan, number, name) * of).sum(axis=(1, 2)) for name, of in (
        (bags, owner * _vector_bytes(trace, plan, wire)), ("distinct", ~owner)))


def _pairs(trace: Trace, plan: ShardPlan, number: int, name: str) -> np.ndarray:
    """Return a member of `host.systems.tally.Counts` of a measured mini-batch, without own tables:
    int64 ``[requester, owner, tables]``."""
    tally, nodes = tally_of(trace, number, plan.nodes), plan.nodes
    found = np.zeros((nodes, nodes, len(plan.tables)), np.int64)
    for table, of in enumerate(plan.tables):
        if of.kind == DescriptorKind.REPLICATED:
            continue
        each = (getattr(tally.counts, name)[:, table, None] if of.owners == 1 else
                getattr(tally.hashed(of.owners), name)[:, table])
        found[:, of.owner:of.owner + of.owners, table] = each
    found[range(nodes), range(nodes)] = 0
    return found


@once
def slots_of(trace: Trace, owner: tuple[int, ...], copied_rows: int = 0) -> int:
    """Return the most slots of a sample in tables of more than ``copied_rows`` rows: a slot per key
    or empty bag, and per bag of the tables ``owner``, numbered without copied tables."""
    kept = np.array(trace.model.rows) > copied_rows
    pooled = np.isin(np.arange(np.count_nonzero(kept)), owner)
    return max(int(slots_with(batch.samples.bag_lengths[:, kept], pooled).max())
               for batch in trace.batches)


@once
def segments_of(trace: Trace, plan: ShardPlan) -> int:
    """Return the most segments of a sample's bags in the owner-pooled tables of ``plan``."""
    return max(int(segments_of_samples(batch.samples, plan).max()) for batch in trace.batches)
