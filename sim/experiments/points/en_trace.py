"""The part of a trace that EN's NICs see: without tables of which GPUs have copies, and each key of
a share once."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from host.batching import MiniBatch
from host.placement.once import sent_once
from host.placement.shard import ShardPlan
from host.samples import Samples
from sim.experiments.points.trace import Trace

__all__ = ["copied_all", "each_once", "without_small"]


def copied_all(trace: Trace, rows: int) -> bool:
    """Return whether no table has more than ``rows`` rows, so that nothing would be left."""
    return max(trace.model.rows) <= rows


@lru_cache(maxsize=16)
def without_small(trace: Trace, rows: int) -> Trace:
    """Return a trace without the tables of at most ``rows`` rows, one of which is left at least.
    """
    kept = np.array([each > rows for each in trace.model.rows])
    if kept.all():
        return trace
    model = trace.model.with_rows(tuple(
        each for each in trace.model.rows if each > rows))
    number = np.cumsum(kept) - 1

    def less(samples: Samples) -> Samples:
        held = kept[samples.tables]
        return Samples(samples.dense, samples.labels,
                       np.ascontiguousarray(samples.bag_lengths[:, kept]),
                       number[samples.tables[held]].astype(np.int32), samples.rows[held])

    return replace(trace, changed=True, model=replace(
        model, name=f"{trace.model.name}, tables of more than {rows} rows"), batches=tuple(
            replace(batch, samples=less(batch.samples)) for batch in trace.batches))


@lru_cache(maxsize=16)
def each_once(trace: Trace, plan: ShardPlan, room: int) -> Trace:
    """Return a trace in which each key of a node's share is looked up once, as a bag of its own.

    An owner's keys are one table, so that a sample has one key of each owner, in the order of first
    use; where an owner has fewer keys than another, its bags are empty, and asked for and delivered
    all the same. Nodes have as many samples as the one with most keys needs, so that keys come from
    the nodes that ask for them. With this plan's placement ``even``, table and node have the same
    number.

    ``plan``: by which keys have owners; none is replicated. ``room``: keys that the table of
    repeats holds; repeats of others are looked up again.
    """
    rows = np.cumsum([0, *trace.model.rows])
    model = replace(trace.model.with_rows((int(rows[-1]),) * plan.nodes), bags=(),
                    name=f"{trace.model.name}, each key once, {room} at most")
    return replace(trace, changed=True, model=model, batches=tuple(
        _once(batch, plan, room, rows) for batch in trace.batches))


def _once(batch: MiniBatch, plan: ShardPlan, room: int, offsets: np.ndarray) -> MiniBatch:
    samples, nodes = batch.samples, plan.nodes
    asked = []
    for node, share in enumerate(samples.shares(nodes)):
        sent = sent_once(share.keys, room)
        tables, found = share.tables[sent], share.rows[sent]
        owner = plan.owner_of(tables, found, node)
        asked.append([(offsets[tables] + found)[owner == each] for each in range(nodes)])
    most = max(1, max(len(keys) for each in asked for keys in each))
    rows = np.zeros((nodes, most, nodes), np.int64)
    lengths = np.zeros((nodes, most, nodes), np.int32)
    for node, of_owners in enumerate(asked):
        for owner, keys in enumerate(of_owners):
            rows[node, :len(keys), owner] = keys
            lengths[node, :len(keys), owner] = 1
    held = lengths.astype(bool)
    table = np.broadcast_to(np.arange(nodes, dtype=np.int32), held.shape)
    size = nodes * most
    return replace(batch, samples=Samples(
        np.zeros((size, samples.dense.shape[1]), np.float32), np.zeros(size, np.float32),
        lengths.reshape(size, nodes), table[held], rows[held]), numbers=np.arange(size))
