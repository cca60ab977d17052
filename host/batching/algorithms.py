"""The algorithms by name."""

from collections.abc import Callable, Iterator

import numpy as np

from host.batching.baselines import file_order, key_order
from host.batching.graph import Graph
from host.batching.greedy import greedy_order
from host.samples import Samples

__all__ = ["ALGORITHMS", "HYPEREDGES", "PRINTED_HYPEREDGES", "WINDOW_BATCHES", "Algorithm",
           "algorithm_of"]

Algorithm = Callable[[Samples, int], Iterator[np.ndarray]]
"""Takes a window and the samples of a mini-batch; yields the places in the window of each
mini-batch's samples (int64), one mini-batch at a time, until every sample was given. Only the
last may be short."""

HYPEREDGES = 16
"""The hyperedge threshold of ``graph``, one for all data sets: of 4 to 128 the one that saves most
on the mean of generated samples like Criteo's two sets and Avazu's (128 of 2,048)."""

PRINTED_HYPEREDGES = 128
"""That of ``graph-printed``, found likewise among 32 to 384. It matters more there."""

WINDOW_BATCHES = 16
"""Mini-batches of a window where no window is named."""

ALGORITHMS: dict[str, Algorithm] = {
    "file": file_order,
    "sort": key_order,
    "greedy": greedy_order,
    "graph": Graph(HYPEREDGES),
    "graph-printed": Graph(PRINTED_HYPEREDGES, refinements=0),
}
"""``graph-printed`` is algorithm 1 as the paper prints it."""


def algorithm_of(name: str) -> Algorithm:
    """Return an algorithm by its name; ``ValueError`` where there is none."""
    if name not in ALGORITHMS:
        raise ValueError(f"batching must be one of {', '.join(ALGORITHMS)}, not {name!r}")
    return ALGORITHMS[name]
