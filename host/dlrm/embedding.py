"""Embedding part of training without a NIC: pooled vectors forward, bag gradients backward."""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import numpy as np

from host.dlrm.bounds import Interval, row_bounds, sum_bounds
from host.dlrm.dlrm import pool, pool_rounded, weighted_of
from host.dlrm.exact_keys import sums_by_key
from host.dlrm.float32 import means
from host.dlrm.formats import FLOAT32, VectorFormat
from host.dlrm.optimizer import Optimizer
from host.dlrm.row_store import RowStore
from host.dlrm.weighted import rows_once, sent_gradients
from host.model import Model
from host.samples import KEY_ROW_BITS, Samples, share_sizes

__all__ = ["PARTIALS", "EmbeddingTables", "added_repeats", "key_gradients", "row_gradients",
           "sums_in_order"]

PARTIALS = ("exact", "rounded")
"""Forms of a node's gradient sum of a row before it is added to the sums of other nodes."""


def key_gradients(samples: Samples, gradients: np.ndarray, pooling: str,
                  weighted: np.ndarray | None = None,
                  wire: VectorFormat = FLOAT32) -> np.ndarray:
    """Return the gradient of each key, float32 ``[k, d]``, from gradients of bags ``[n, tables,
    d]``.

    Each key of a bag has the gradient of the bag. For ``pooling`` ``mean``, it is divided, once per
    bag, by float32 of the bag's length. A repeated key in a bag has the gradient repeatedly.

    ``weighted``: whether the bags of each table have weights, bool ``[tables]``, None without: a
    key's gradient is then the product with its weight, see
    :func:`host.dlrm.weighted.sent_gradients`. ``wire``: format to which the gradients are rounded,
    before a mean divides them.
    """
    shape = (*samples.bag_lengths.shape, gradients.shape[-1])
    if gradients.shape != shape:
        raise ValueError(f"gradients must have shape {shape!r}, not {gradients.shape!r}")
    lengths = samples.bag_lengths.reshape(-1)
    bags = gradients.reshape(len(lengths), shape[-1])
    numbers = np.arange(len(lengths))
    if weighted is not None:
        numbers, lengths, bags = sent_gradients(samples, gradients, weighted)
    bags = wire.rounded(bags, numbers % shape[1])
    if pooling == "mean":
        bags = means(bags, lengths)
    return np.repeat(bags, lengths, axis=0)


def sums_in_order(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct ``keys [n]``, ascending, and the sum of each key's ``values [n, d]``.

    A sum starts from the key's first value and adds the other values in order, in float32, as
    :func:`host.dlrm.dlrm.pool` does.
    """
    order = np.argsort(keys, kind="stable")
    distinct, counts = np.unique(keys, return_counts=True)
    return distinct, pool(values[order], counts)


def added_repeats(samples: Samples, gradients: np.ndarray,
                  first: np.ndarray) -> tuple[Samples, np.ndarray]:
    """Return the samples with empty bags in place of bags that repeat a bag, and the gradients of
    bags: the gradient of a bag is the sum of its own and of those of its repeats.

    A sum adds in sample order, in float32, see `sums_in_order`. The gradients of means are divided
    before, see :func:`host.dlrm.dlrm.divided`.

    gradients: of all bags, float32 ``[n, tables, d]``. first: sample whose bag stands for each bag,
    int64 ``[n, tables]``, see :func:`host.batching.repeats.first_bags`.
    """
    count, tables = first.shape
    bags, added = sums_in_order((first * tables + np.arange(tables)).reshape(-1),
                                gradients.reshape(first.size, gradients.shape[-1]))
    sums = np.zeros((first.size, gradients.shape[-1]), np.float32)
    sums[bags] = added
    return samples.of_bags(first == np.arange(count)[:, None]), sums.reshape(gradients.shape)


def row_gradients(samples: Samples, gradients: np.ndarray, nodes: int = 1, partials: str = "exact",
                  in_order: Sequence[int] = ()) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct keys of a mini-batch, ascending, and the gradients of their rows.

    ``gradients [k, d]`` are the gradients of the keys. For ``partials`` ``exact``, a row's gradient
    is the exact sum, rounded once, for any ``nodes``. For ``rounded``, the keys of each node's
    samples are summed exactly and rounded once; the row's gradient is the exact sum of these sums,
    rounded once. Nodes have contiguous shares of the samples whose sizes differ by at most 1;
    larger shares come first.

    ``in_order``: numbers of the tables whose gradients are summed by :func:`sums_in_order` instead,
    in the order of the mini-batch, for any ``nodes``.
    """
    if len(in_order):
        chosen = np.isin(np.arange(samples.bag_lengths.shape[1]), in_order)
        here = chosen[samples.tables]
        parts = (sums_in_order(samples.keys[here], gradients[here]),
                 row_gradients(samples.of_tables(~chosen), gradients[~here], nodes, partials))
        keys, sums = (np.concatenate(part) for part in zip(*parts))
        order = np.argsort(keys)
        return keys[order], sums[order]
    if partials == "exact":
        return sums_by_key(samples.keys, gradients)
    bounds = accumulate(share_sizes(len(samples), nodes), initial=0)
    offsets = samples.key_offsets[list(bounds)].tolist()
    parts = [sums_by_key(samples.keys[first:last], gradients[first:last])
             for first, last in pairwise(offsets)]
    return sums_by_key(*(np.concatenate(part) for part in zip(*parts)))


class EmbeddingTables:
    """Tables with lookups and updates like those of a cluster of ``nodes``.

    Parameters
    ----------
    model, seed: tables and their initial rows.
    optimizer: optimizer of the rows.
    nodes, partials, in_order: order of gradient sums, see `row_gradients`.
    first: function from a mini-batch to the sample whose bag stands for each bag; the gradients of
        repeated bags are added first, see `added_repeats`. None to add none.
    wire, gradient_wire: formats of vectors and of their gradients between nodes; other formats than
        float32 require that all tables pool at their owner.

    ``rows`` are the written rows.
    """

    def __init__(self, model: Model, seed: int, optimizer: Optimizer | None = None,
                 nodes: int = 1, partials: str = "exact", in_order: Sequence[int] = (),
                 first: Callable[[Samples], np.ndarray] | None = None,
                 wire: VectorFormat = FLOAT32, gradient_wire: VectorFormat = FLOAT32) -> None:
        if nodes < 1:
            raise ValueError(f"nodes must be at least 1, not {nodes!r}")
        if partials not in PARTIALS:
            raise ValueError(f"partials must be {' or '.join(PARTIALS)}, not {partials!r}")
        if first is not None and model.nic_pooling == "mean":
            raise ValueError("pooling must be sum, or left to hosts, where gradients of repeated "
                             "bags are added, not 'mean': use Model.with_host_means")
        if model.weighted_tables and model.nic_pooling == "mean":
            raise ValueError("pooling must be sum, or left to hosts, for weighted bags, not "
                             "'mean': use Model.with_host_means")
        self.optimizer = optimizer or Optimizer()
        self.nodes = nodes
        self.partials = partials
        self.in_order = in_order
        self.first = first
        self._wire, self._gradient_wire = wire, gradient_wire
        self.rows = RowStore(model, seed)
        self._weighted = weighted_of(model)

    def pooled(self, samples: Samples) -> np.ndarray:
        """Return the pooled vectors of every bag: float32 ``[n, tables, d]``."""
        vectors, _ = self.rows.read(samples.keys)
        numbers = np.tile(np.arange(samples.table_count), len(samples))
        pooled = pool_rounded(
            vectors, samples.bag_lengths.reshape(-1), self.rows.model.nic_pooling, samples.weights,
            self._weighted[numbers], self._wire, numbers, np.ones(len(numbers), bool))
        return pooled.reshape(*samples.bag_lengths.shape, -1)

    def update(self, samples: Samples, gradients: np.ndarray) -> None:
        """Update every row of the mini-batch with the gradients of its bags ``[n, tables, d]``."""
        keys, sums = row_gradients(*self._sent(samples, gradients), self.nodes, self.partials,
                                   self.in_order)
        vectors, states = self.rows.read(keys)
        self.rows.write(keys, *self.optimizer.apply(vectors, states, sums))

    def bounds(self, samples: Samples, gradients: np.ndarray) -> tuple[Interval, Interval]:
        """Return the bounds of vectors and states that `update` would write if the gradients of a
        row were summed in float32, in any order; of ascending keys.

        Gradients of tables ``in_order`` are summed as in `update`.
        """
        samples, values = self._sent(samples, gradients)
        keys, (low, high) = sum_bounds(samples.keys, values)
        if len(self.in_order):
            _, sums = row_gradients(samples, values, in_order=self.in_order)
            same = np.isin(keys >> KEY_ROW_BITS, self.in_order)[:, None]
            low, high = (np.where(same, sums, edge) for edge in (low, high))
        return row_bounds(self.optimizer, *self.rows.read(keys), (low, high))

    def _sent(self, samples: Samples, gradients: np.ndarray) -> tuple[Samples, np.ndarray]:
        """Return the samples whose keys have a gradient, and the gradients of these keys."""
        if self.first is not None:
            samples, gradients = added_repeats(samples, gradients, self.first(samples))
        samples = rows_once(samples, self._weighted)
        return samples, key_gradients(samples, gradients, self.rows.model.nic_pooling,
                                      self._weighted, self._gradient_wire)
