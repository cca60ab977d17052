"""Registry of the batching algorithms by name."""

from collections.abc import Callable, Iterator

import numpy as np

from host.batching.baselines import file_order, key_order
from host.batching.graph import Graph
from host.batching.greedy import greedy_order
from host.samples import Samples

__all__ = ["ALGORITHMS", "HYPEREDGES", "PRINTED_HYPEREDGES", "WINDOW_BATCHES", "Algorithm",
           "algorithm_of"]

Algorithm = Callable[[Samples, int], Iterator[np.ndarray]]
"""Function of a window and the mini-batch size.

It yields the positions (int64) in the window of each mini-batch's samples, until every sample is
used. Only the last mini-batch may be short.
"""

HYPEREDGES = 16
"""Hyperedge threshold of ``graph``: the best of 4 to 128, on average over generated samples of the
three data sets (128 of 2,048).
"""

PRINTED_HYPEREDGES = 128
"""Hyperedge threshold of ``graph-printed``: the best of 32 to 384 on the same samples."""

WINDOW_BATCHES = 16
"""Default window size in mini-batches."""

ALGORITHMS: dict[str, Algorithm] = {
    "file": file_order,
    "sort": key_order,
    "greedy": greedy_order,
    "graph": Graph(HYPEREDGES),
    "graph-printed": Graph(PRINTED_HYPEREDGES, refinements=0),
}
"""``graph-printed`` is algorithm 1 as the paper prints it."""


def algorithm_of(name: str) -> Algorithm:
    """Return the algorithm ``name``. Raises ``ValueError`` if it does not exist."""
    if name not in ALGORITHMS:
        raise ValueError(f"batching must be one of {', '.join(ALGORITHMS)}, not {name!r}")
    return ALGORITHMS[name]
