"""What a process asks NICs for that are in another one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from sim.torch.lookups.bags import Bags

__all__ = ["Elsewhere", "Query"]


@dataclass(frozen=True, eq=False)
class Query:
    """The bags of one call, with the rows that they read.

    Members
    -------
    table: its number in the process. shape: of the table.
    rows: of each key, int64 ``[k]``; lengths, of each bag; pooling, weights: see
        :class:`sim.torch.lookups.bags.Bags`.
    distinct: the rows that are read, int64 ``[m]``. vectors: these rows now, float32 ``[m, d]``.
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
        """Return the query of a call; ``values``: of its table, float32 ``[rows, d]``."""
        distinct = np.unique(bags.rows)
        return cls(table, values.shape, bags.rows, bags.lengths, bags.pooling, bags.weights,
                   distinct, values[distinct])

    def bags(self, weight: torch.Tensor) -> Bags:
        """Return its bags in a table ``weight``, to which the rows are written that they read."""
        weight.numpy()[self.distinct] = self.vectors
        return Bags(weight, self.rows, self.lengths, self.pooling, self.weights)


Elsewhere = Callable[[Sequence[Query], bool], Sequence[np.ndarray]]
"""A function that returns the pooled vectors of queries, float32 ``[n, d]`` each. It is told
whether the process has written to its tables since the last time."""
