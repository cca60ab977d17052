"""The part of a trace that EN's NICs see: without tables of which GPUs have copies."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from host.samples import Samples
from sim.evaluation.trace import Trace

__all__ = ["copied_all", "without_small"]


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
