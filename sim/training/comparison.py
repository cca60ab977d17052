"""Bit-for-bit comparison of the rows that NICs write with those of the numpy reference."""

from collections.abc import Sequence

import numpy as np

from host.distinct import distinct
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

    Members
    -------
    rows, different: compared rows, and rows that differed or were not written.
    extra: rows that were written without a gradient.
    first: the first wrong row: ``step``, ``table``, ``row``, ``node`` and the error (``what``);
        None if all rows are correct.
    """

    def __init__(self, reference: EmbeddingTables, stores: Sequence[RowStore], plan: ShardPlan):
        self.reference, self._stores, self._plan = reference, stores, plan
        self.rows = self.different = self.extra = 0
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
        self.reference.update(samples, gradients)
        keys = distinct(samples.keys)
        owners = self._plan.owner_of(keys >> KEY_ROW_BITS, keys & (1 << KEY_ROW_BITS) - 1)
        for node, store in enumerate(self._stores):
            own = keys[owners == node]
            self._rows(number, node, own, store, written[node])

    def _rows(self, number: int, node: int, keys: np.ndarray, store: RowStore,
              written: np.ndarray) -> None:
        self.rows += len(keys)
        there = np.isin(keys, written)
        expected, found = self.reference.rows.read(keys), store.read(keys)
        vectors = (expected[0].view(np.uint32) == found[0].view(np.uint32)).all(axis=1)
        states = expected[1].view(np.uint32) == found[1].view(np.uint32)
        extra = np.setdiff1d(written, keys)
        self.different += int((~(there & vectors & states)).sum())
        self.extra += len(extra)
        for bad, what in ((keys[~there], "was not written"), (keys[~vectors], "has another vector"),
                          (keys[~states], "has another state"), (extra, "has no gradient")):
            if self.first is None and len(bad):
                key = int(bad[0])
                self.first = {"step": number, "table": key >> KEY_ROW_BITS,
                              "row": key & (1 << KEY_ROW_BITS) - 1, "node": node, "what": what}
