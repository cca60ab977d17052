"""Operations of the embedding tables: lookups, key handling, and updates in training."""

from dataclasses import replace

from host.devices.dense_work import interaction
from host.devices.operation import Operation
from host.model import Model

__all__ = [
    "WEIGHT_BYTES",
    "expand",
    "expanded_interaction",
    "gather",
    "layout",
    "narrowed",
    "row_state",
    "scatter_update",
    "segment_sum",
    "unique",
]

WEIGHT_BYTES = 4
"""Bytes of the weight of a key: float32."""
_INDEX = 8
"""Bytes of an index or an offset: int64, as in frameworks."""
_ROW_READS = 2
"""Reads in sequence: an index or a count, and what it points to."""
_SORT_BITS = 8
"""Bits of a key sorted per pass of the radix sort."""


def gather(rows: int, bags: int, dimension: int, tables: int = 1,
           fused: bool = False, weights: int = 0, written: int = 32) -> Operation:
    """Read ``rows`` rows of ``dimension`` float32 and pool them to ``bags`` vectors.

    An operator with a kernel per table, or a single one if ``fused``. It reads indices and offsets
    and writes pooled vectors. It multiplies ``weights`` of the rows by a weight that it reads.

    written: bits of a value of a pooled vector. The same kernel converts it from float32 before it
    writes.
    """
    calls = 1 if fused else max(1, tables)
    added = (rows - bags) * dimension if rows > bags else 0
    return Operation("gather", _INDEX * (rows + bags) + written * dimension * bags // 8
                     + WEIGHT_BYTES * weights, rows, 4 * dimension,
                     added + weights * dimension + bags * dimension * (written < 32),
                     calls, calls, fused_embedding=fused, reads=_ROW_READS)


def narrowed(operation: Operation, rows: int, bits: int) -> Operation:
    """Return ``operation`` with values of ``bits`` bits in ``rows`` of its rows, which the same
    kernel converts to float32."""
    if not rows or bits == 32:
        return operation
    return replace(operation, rows=operation.rows - rows,
                   flops=operation.flops + rows * operation.row_bytes // 4,
                   more_rows=(*operation.more_rows, (rows, operation.row_bytes * bits // 32)))


def layout(values: int, size: int = _INDEX, operators: int = 1, weights: int = 0) -> Operation:
    """Rearrange ``values`` values of ``size`` bytes: indices and offsets split, joined, permuted;
    and ``weights`` of keys.

    Each value is read and written once.
    """
    return Operation("layout", 2 * (size * values + WEIGHT_BYTES * weights), operators=operators,
                     kernels=operators)


def unique(keys: int, size: int = _INDEX, values: int | None = None) -> Operation:
    """Sort ``keys`` keys of ``size`` bytes and number the distinct keys, for dedupe.

    A radix sort of keys and positions with 8 bits per pass, each of which reads and writes
    everything once (Adinets and Merrill, "Onesweep", 2022); then three passes for the segment
    borders, their prefix sum, and each position's number. A single operator, with a kernel per pass
    and a kernel for the histogram.

    values: number of possible keys, whose bits alone are sorted, as in FBGEMM's fused operators
    (``total_hash_size_bits``). None sorts all bits, as in PyTorch's ``embedding_bag`` and
    ``unique``.
    """
    bits = 8 * size if values is None else max(1, (values - 1).bit_length())
    passes = -(-bits // _SORT_BITS)
    return Operation("unique", 2 * (size + _INDEX) * keys * passes + (size + 3 * 2 * _INDEX) * keys,
                     reads=_ROW_READS * (passes + 4), kernels=passes + 4)


def expand(rows: int, bags: int, dimension: int) -> Operation:
    """Copy the gradient of each of ``bags`` bags to all of its ``rows`` rows."""
    return Operation("expand", 4 * dimension * (bags + rows) + _INDEX * (rows + bags))


def segment_sum(rows: int, groups: int, dimension: int) -> Operation:
    """Sum ``rows`` vectors, read randomly in key order, to ``groups`` vectors."""
    return Operation("segment_sum", 4 * dimension * groups + _INDEX * rows, rows, 4 * dimension,
                     (rows - groups) * dimension if rows > groups else 0, reads=_ROW_READS)


def scatter_update(rows: int, dimension: int) -> Operation:
    """Read, update and write ``rows`` random rows, each with its gradient, by SGD."""
    return Operation("scatter_update", (4 * dimension + _INDEX) * rows, 2 * rows, 4 * dimension,
                     2 * rows * dimension, reads=_ROW_READS)


def row_state(rows: int, dimension: int) -> Operation:
    """Read and write the float32 state of ``rows`` rows, for row-wise Adagrad."""
    return Operation("row_state", (4 * dimension + _INDEX) * rows, 2 * rows, 4,
                     (2 * dimension + 3) * rows, reads=_ROW_READS)


def expanded_interaction(samples: int, model: Model, rows: int, bags: int, index_bytes: int,
                         level: int = 0) -> tuple[Operation, ...]:
    """Read ``rows`` vectors by index, pool them to ``bags`` vectors in slot order, and interact.

    ``rows`` counts slots, including slots that share a delivered vector and slots in tables on the
    GPU. The model's other bags are already pooled. From level 2 on, a single kernel does everything
    and writes only the interaction; otherwise an operator writes the pooled vectors first.

    index_bytes: bytes of the indices. Vectors have the width of the NICs'.
    """
    width = model.width
    added = (rows - bags) * width if rows > bags else 0
    if level < 2 or model.interaction == "cat":
        return (Operation("expand", index_bytes + 4 * width * bags, rows, 4 * width, added,
                          reads=_ROW_READS), *interaction(samples, model, level))
    (whole,) = interaction(samples, model, level)
    return (replace(whole, name="expand and interaction", rows=rows, row_bytes=4 * width,
                    reads=_ROW_READS,
                    streamed_bytes=whole.streamed_bytes - 4 * width * bags + index_bytes,
                    flops=whole.flops + added),)
