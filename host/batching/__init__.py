"""Mini-batches whose samples share keys, formed from windows of preloaded samples."""

from .algorithms import (
    ALGORITHMS,
    HYPEREDGES,
    PRINTED_HYPEREDGES,
    WINDOW_BATCHES,
    Algorithm,
    algorithm_of,
)
from .baselines import file_order, key_order
from .compare import compare, winner
from .graph import Graph
from .greedy import greedy_order
from .mini_batch import MiniBatch
from .refresh import Refresh
from .stream import Batcher

__all__ = [
    "ALGORITHMS", "HYPEREDGES", "PRINTED_HYPEREDGES", "WINDOW_BATCHES", "Algorithm", "Batcher",
    "Graph", "MiniBatch", "Refresh", "algorithm_of", "compare", "file_order", "greedy_order",
    "key_order", "winner",
]
