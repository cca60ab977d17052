"""Mini-batches whose samples share keys, formed from windows of preloaded samples."""

from host.batching.algorithms import (
    ALGORITHMS,
    HYPEREDGES,
    PRINTED_HYPEREDGES,
    WINDOW_BATCHES,
    Algorithm,
    algorithm_of,
)
from host.batching.baselines import file_order, key_order
from host.batching.compare import Tried, compare, compare_stream, winner
from host.batching.graph import Graph
from host.batching.greedy import greedy_order
from host.batching.mini_batch import MiniBatch
from host.batching.refresh import Refresh
from host.batching.repeats import REPEATS
from host.batching.stream import Batcher

__all__ = [
    "ALGORITHMS", "HYPEREDGES", "PRINTED_HYPEREDGES", "REPEATS", "WINDOW_BATCHES", "Algorithm",
    "Batcher", "Graph", "MiniBatch", "Refresh", "Tried", "algorithm_of", "compare",
    "compare_stream", "file_order", "greedy_order", "key_order", "winner",
]
