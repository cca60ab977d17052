"""Where the tables of a point lie."""

from functools import lru_cache

import numpy as np

from host.placement.shard import ShardPlan
from sim.evaluation.point import Point
from sim.evaluation.trace import Trace

__all__ = ["plan_of"]


def plan_of(point: Point, trace: Trace) -> ShardPlan:
    """Return the plan of a point's tables, the same for every system.

    Placement ``lookups`` counts those of the whole trace, warm-up included.
    """
    return _plan(trace, point.nodes, point.placement).with_copies(point.copied_rows)


@lru_cache(maxsize=8)
def _plan(trace: Trace, nodes: int, placement: str) -> ShardPlan:
    lookups = None
    if placement == "lookups":
        lookups = np.sum([batch.samples.bag_lengths.sum(axis=0, dtype=np.int64)
                          for batch in trace.batches], axis=0).tolist()
    return ShardPlan.deal(trace.model, nodes, placement, lookups)
