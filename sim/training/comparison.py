"""Comparison of the rows that NICs write with those of the numpy reference, bit for bit or within
the rounding of float32 sums."""

from collections.abc import Sequence

import numpy as np

from host.distinct import distinct
from host.dlrm.bounds import Interval
from host.dlrm.embedding import EmbeddingTables
from host.dlrm.row_store import RowStore
from host.placement.shard import ShardPlan
from host.samples import KEY_ROW_BITS, Samples

__all__ = ["Comparison"]


class Comparison:
    """Comparison of a cluster's tables with a reference that gets the same gradients.

    reference: tables of the reference.
    stores: rows of each node.
    plan: plan that assigns rows to nodes.
    float32: NICs round each addition, so bit-identity is not expected. A row must be within
        :meth:`~host.dlrm.embedding.EmbeddingTables.bounds`. After each step, the reference takes
        over the rows of the NICs: a bound covers the roundings of one step.

    Members
    -------
    rows, different: compared rows, and rows that differed, or left their bounds, or were not
        written.
    rounded: rows within their bounds that differ from the reference.
    extra: rows that were written without a gradient.
    first: the first wrong row: ``step``, ``table``, ``row``, ``node`` and the error (``what``);
        None if all rows are correct.
    """

    def __init__(self, reference: EmbeddingTables, stores: Sequence[RowStore], plan: ShardPlan,
                 *, float32: bool = False):
        self.reference, self._stores, self._plan = reference, stores, plan
        self.float32 = float32
        self.rows = self.different = self.extra = self.rounded = 0
        self.first: dict | None = None

    @property
    def good(self) -> bool:
        """True if every row so far was correct."""
        return not (self.different or self.extra)

    def step(self, number: int, samples: Samples, gradients: np.ndarray,
             written: Sequence[np.ndarray]) -> None:
        """Update the reference, and compare the rows of step ``number``.

        written: ascending keys of the rows that each node wrote in the step.
        """
        bounds = self.reference.bounds(samples, gradients) if self.float32 else None
        self.reference.update(samples, gradients)
        keys = distinct(samples.keys)
        owners = self._plan.owner_of(keys >> KEY_ROW_BITS, keys & (1 << KEY_ROW_BITS) - 1)
        for node, store in enumerate(self._stores):
            mine = owners == node
            self._rows(number, node, keys[mine], store, written[node], bounds and [
                (low[mine], high[mine]) for low, high in bounds])

    def _rows(self, number: int, node: int, keys: np.ndarray, store: RowStore,
              written: np.ndarray, bounds: Sequence[Interval] | None) -> None:
        self.rows += len(keys)
        there = np.isin(keys, written)
        expected, found = self.reference.rows.read(keys), store.read(keys)
        vectors = (expected[0].view(np.uint32) == found[0].view(np.uint32)).all(axis=1)
        states = expected[1].view(np.uint32) == found[1].view(np.uint32)
        if bounds is not None:
            equal = vectors & states
            vectors = vectors | _within(found[0], bounds[0]).all(axis=1)
            states = states | _within(found[1], bounds[1])
            self.rounded += int((there & vectors & states & ~equal).sum())
            self.reference.rows.write(keys, *found)
        extra = np.setdiff1d(written, keys)
        self.different += int((~(there & vectors & states)).sum())
        self.extra += len(extra)
        for bad, what in ((keys[~there], "was not written"), (keys[~vectors], "has another vector"),
                          (keys[~states], "has another state"), (extra, "has no gradient")):
            if self.first is None and len(bad):
                key = int(bad[0])
                self.first = {"step": number, "table": key >> KEY_ROW_BITS,
                              "row": key & (1 << KEY_ROW_BITS) - 1, "node": node, "what": what}


def _within(values: np.ndarray, bounds: Interval) -> np.ndarray:
    """Return whether each value is within its bounds; any value is, if a bound is not finite."""
    low, high = bounds
    return (low <= values) & (values <= high) | ~(np.isfinite(low) & np.isfinite(high))
