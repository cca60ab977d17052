"""Lookup request to the process that owns the NICs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from sim.torch.lookups.bags import Bags

__all__ = ["Elsewhere", "Query"]


@dataclass(frozen=True, eq=False)
class Query:
    """The bags of a call and the rows that they read.

    Members
    -------
    table: number of the table in the process.
    shape: shape of the table.
    rows: row of each key, int64 ``[k]``.
    lengths: keys of each bag.
    pooling, weights: see :class:`sim.torch.lookups.bags.Bags`.
    distinct: distinct rows, int64 ``[m]``.
    vectors: current values of these rows, float32 ``[m, d]``.
    """

    table: int
    shape: tuple[int, int]
    rows: np.ndarray
    lengths: np.ndarray
    pooling: str
    weights: np.ndarray | None
    distinct: np.ndarray
    vectors: np.ndarray

    @classmethod
    def of(cls, bags: Bags, table: int, values: np.ndarray) -> "Query":
        """Return the query of a call.

        values: values of its table, float32 ``[rows, d]``.
        """
        distinct = np.unique(bags.rows)
        return cls(table, values.shape, bags.rows, bags.lengths, bags.pooling, bags.weights,
                   distinct, values[distinct])

    def bags(self, weight: torch.Tensor) -> Bags:
        """Write the rows to ``weight``, and return the bags with this table."""
        weight.numpy()[self.distinct] = self.vectors
        return Bags(weight, self.rows, self.lengths, self.pooling, self.weights)


Elsewhere = Callable[[Sequence[Query], bool], Sequence[np.ndarray]]
"""Function that returns the pooled vectors of queries, float32 ``[n, d]`` each. The second argument
is True if the process has written to its tables since the last call."""
