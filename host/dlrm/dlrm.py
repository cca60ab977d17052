"""DLRM inference in numpy: the reference for every simulated cluster."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from host.dlrm.float32 import canonical, fused, means, quiet
from host.dlrm.formats import VectorFormat
from host.dlrm.interaction import interaction
from host.dlrm.mlp import Layer, forward, initial_layers, linear_blas, linear_fixed
from host.dlrm.rows import row_values
from host.hashing import mix64_int
from host.model import Model
from host.samples import Samples

__all__ = ["Dlrm", "divided", "pool", "pool_rounded", "pooled_reference", "sigmoid",
           "weighted_of"]

_BLOCK_KEYS = 1 << 16


@quiet()
def pool(vectors: np.ndarray, lengths: np.ndarray, pooling: str = "sum",
         weights: np.ndarray | None = None, weighted: np.ndarray | None = None) -> np.ndarray:
    """Pool bags in float32: ``vectors [k, d]`` concatenated in bag order, ``lengths [bags]``.

    A sum starts from the bag's first vector and adds the other vectors in order; an empty bag gives
    +0. The sum of a weighted bag starts from +0 and adds the product of each vector and its weight
    in order, with a fused multiply-add, as FBGEMM does. For ``pooling`` ``mean``, the sum is
    divided by float32 of the bag's length. A NaN is 0x7FC00000, except in a bag with a single
    vector and no weight, whose sum is the vector bit for bit. Returns float32 ``[bags, d]``.

    weights: weight of each vector, float32 ``[k]``; None without weights.
    weighted: whether each bag uses its weights: bool ``[bags]``; None for all bags.
    """
    lengths = np.asarray(lengths, np.int64)
    result = np.zeros((len(lengths), vectors.shape[1]), np.float32)
    first = np.cumsum(lengths) - lengths
    uses = np.full(len(lengths), weights is not None) if weighted is None else weighted
    longest_first = np.argsort(-lengths, kind="stable")
    # With bags sorted by length, bags with a vector at a position are contiguous.
    reaching = len(lengths) - np.searchsorted(np.sort(lengths), np.arange(lengths.max(initial=0)),
                                              side="right")
    for position, count in enumerate(reaching):
        bags = longest_first[:count]
        if weights is not None:
            mine, bags = bags[uses[bags]], bags[~uses[bags]]
            at = first[mine] + position
            result[mine] = fused(vectors[at], weights[at, None], result[mine])
        if position == 0:
            result[bags] = vectors[first[bags]]
        else:
            result[bags] += vectors[first[bags] + position]
    if pooling == "mean":
        return means(result, lengths)
    added = lengths > 1
    result[added] = canonical(result[added])
    return result


def pool_rounded(vectors: np.ndarray, lengths: np.ndarray, pooling: str,
                 weights: np.ndarray | None, weighted: np.ndarray | None, wire: VectorFormat,
                 tables: np.ndarray, at_owner: np.ndarray) -> np.ndarray:
    """Pool bags of vectors that are rounded to format ``wire`` on their way: float32 ``[bags, d]``.

    The sum of a bag that pools at its owner is rounded, before a mean divides it. For any other
    bag, each vector is rounded. The parameters are those of `pool`, and ``tables``, ``at_owner``:
    table of each bag, and whether it pools at its owner, int64 and bool ``[bags]``.
    """
    if wire.plain:
        return pool(vectors, lengths, pooling, weights, weighted)
    rows = np.repeat(~at_owner, lengths)
    vectors = vectors.copy()
    vectors[rows] = wire.rounded(vectors[rows], np.repeat(tables, lengths)[rows])
    sums = pool(vectors, lengths, "sum", weights, weighted)
    sums[at_owner] = wire.rounded(sums[at_owner], tables[at_owner])
    return means(sums, lengths) if pooling == "mean" else sums


def divided(model: Model, vectors: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return ``vectors [n, tables, d]`` of bags of ``lengths [n, tables]``, divided by float32 of
    the length in each table whose means the NICs leave to the host. Row blocks have the length of
    the whole bag.

    Forward, this makes means of the NICs' sums. Backward, it makes the gradient of a sum of the
    gradient of its mean. If NICs make all means, the vectors are unchanged.
    """
    if not (model.poolings or model.host_means):
        return vectors
    poolings = model.poolings or (model.pooling,) * model.tables
    result, mean = vectors.copy(), np.array(poolings) == "mean"
    if model.first_rows:
        tables = np.array(model.originals)
        lengths = (lengths @ np.eye(tables.max() + 1, dtype=np.int64)[tables])[:, tables]
    result[:, mean] = means(vectors[:, mean].reshape(-1, vectors.shape[2]),
                            lengths[:, mean].reshape(-1)).reshape(result[:, mean].shape)
    return result


def weighted_of(model: Model) -> np.ndarray:
    """Return whether the bags of each table have weights: bool ``[tables]``."""
    return np.isin(np.arange(model.tables), model.weighted_tables)


def pooled_reference(samples: Samples, model: Model, seed: int, wire: str = "float32",
                     owner_tables: Collection[int] = ()) -> np.ndarray:
    """Return the pooled vectors of every bag as NICs send them: float32 ``[n, tables, width]``.

    wire: format of vectors on the wire. owner_tables: numbers of the tables whose bags pool at
    their owner; see `pool_rounded`.
    """
    n, dimension = len(samples), model.width
    weights, weighted = samples.weights, weighted_of(model)
    numbers, vector_format = np.arange(model.tables), VectorFormat.of(model, wire)
    at_owner = np.isin(numbers, list(owner_tables))
    result = np.empty((n, model.tables, dimension), np.float32)
    offsets = samples.key_offsets
    first = 0
    while first < n:
        last = int(np.searchsorted(offsets, offsets[first] + _BLOCK_KEYS, side="right")) - 1
        last = max(first + 1, last)
        keys = slice(offsets[first], offsets[last])
        vectors = row_values(model, seed, samples.tables[keys], samples.rows[keys])
        lengths = samples.bag_lengths[first:last].reshape(-1)
        pooled = pool_rounded(
            vectors, lengths, model.nic_pooling, None if weights is None else weights[keys],
            np.tile(weighted, last - first), vector_format,
            *(np.tile(each, last - first) for each in (numbers, at_owner)))
        result[first:last] = pooled.reshape(last - first, -1, dimension)
        first = last
    return result


@quiet()
def sigmoid(values: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-x)), computed in float64 and rounded once to float32."""
    wide = values.astype(np.float64)
    small = np.exp(-np.abs(wide))
    return canonical((np.where(wide >= 0, 1.0, small) / (1.0 + small)).astype(np.float32))


@dataclass(frozen=True)
class Dlrm:
    """A model with its initial weights (Naumov et al. 2019).

    Parameters
    ----------
    model: its shape.
    seed: determines all weights and rows.
    mlp: ``fixed``: bit-identical on every machine; ``blas``: faster, but specific to a machine.
    linear: a bit-identical replacement of :func:`host.dlrm.mlp.linear_fixed` for ``fixed``.
    wire, owner_tables: format of vectors on the wire, and tables that pool at their owner, see
        `pooled_reference`.
    """

    model: Model
    seed: int
    mlp: str = "fixed"
    linear: Callable[[np.ndarray, Layer], np.ndarray] = linear_fixed
    wire: str = "float32"
    owner_tables: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.mlp not in ("fixed", "blas"):
            raise ValueError(f"mlp must be fixed or blas, not {self.mlp!r}")

    def draw(self) -> None:
        """Draw the weights now, which takes a while, instead of at first use."""
        _ = self.bottom_layers, self.top_layers

    # Drawn at first use, because runs with a modelled NIC need no weights.
    @cached_property
    def bottom_layers(self) -> list[Layer]:
        """Layers of the bottom MLP."""
        return initial_layers(self.model.bottom_layers, mix64_int(self.seed, 0x626F74))

    @cached_property
    def top_layers(self) -> list[Layer]:
        """Layers of the top MLP."""
        return initial_layers(self.model.top_layers, mix64_int(self.seed, 0x746F70))

    @property
    def _linear(self):
        return self.linear if self.mlp == "fixed" else linear_blas

    def bottom(self, dense: np.ndarray) -> np.ndarray:
        """Return the dense vectors: float32 ``[n, dimension]``; the last layer has a ReLU too."""
        if dense.shape[1] != self.model.dense:
            raise ValueError(f"dense must have {self.model.dense} features, "
                             f"not {dense.shape[1]!r}")
        return forward(dense, self.bottom_layers, self._linear)

    def top(self, values: np.ndarray) -> np.ndarray:
        """Return the predictions, float32 ``[n]``, from interaction results."""
        return sigmoid(forward(values, self.top_layers, self._linear, last_relu=False)[:, 0])

    def predict(self, dense: np.ndarray, pooled: np.ndarray) -> np.ndarray:
        """Return predictions ``[n]`` from dense features and pooled vectors."""
        return self.top(interaction(self.model, self.bottom(dense), pooled))

    def forward(self, samples: Samples) -> np.ndarray:
        """Return the predictions of ``samples``: float32 ``[n]``."""
        pooled = pooled_reference(samples, self.model, self.seed, self.wire, self.owner_tables)
        return self.predict(samples.dense, divided(self.model, pooled, samples.bag_lengths))
