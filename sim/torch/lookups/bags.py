"""The bags of one call of ``aten::_embedding_bag``, in the form that the NICs' hosts have."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch

from host.dlrm.dlrm import pool
from rtl.config import ROW_BITS
from sim.torch.lookups.memory import array_of

__all__ = ["DIMENSIONS", "Bags", "bags_of", "check_rows", "check_table", "one_key", "pooled",
           "shown"]

_MODES = ("sum", "mean", "max")
"""Poolings by the numbers that ``aten::_embedding_bag`` has for them."""

DIMENSIONS = 256
"""The most values of a vector, see :func:`rtl.config.check_dimension`."""

_NAMES = ("weight", "indices", "offsets", "scale_grad_by_freq", "mode", "sparse",
          "per_sample_weights", "include_last_offset", "padding_idx")
_UNSAID = {"scale_grad_by_freq": False, "mode": 0, "sparse": False, "per_sample_weights": None,
           "include_last_offset": False, "padding_idx": -1}
_INDICES = (torch.int32, torch.int64)


@dataclass(frozen=True, eq=False)
class Bags:
    """The bags that one call looks up: one for each sample.

    Members
    -------
    weight: the script's table, float32 ``[rows, d]``.
    rows: of each key, int64 ``[k]``, bag by bag; padding is left out.
    lengths: keys of each bag, int64 ``[n]``.
    pooling: ``sum`` or ``mean``.
    weights: of each key, float32 ``[k]``; None for none.
    """

    weight: torch.Tensor
    rows: np.ndarray
    lengths: np.ndarray
    pooling: str
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def single(self) -> bool:
        """Whether every bag has one key."""
        return self.lengths is one_key(len(self))[1] or bool((self.lengths == 1).all())

    @property
    def dimension(self) -> int:
        """Values of a vector."""
        return self.weight.shape[1]

    def without_rows(self) -> "Bags":
        """Return the same bags of a table that has a shape and no rows."""
        return replace(self, weight=torch.empty(self.weight.shape, device="meta"))


def bags_of(args: Sequence, kwargs: dict) -> Bags | str:
    """Return the bags of a call, or in words why no NIC serves them.

    ``args``, ``kwargs``: as ``aten::_embedding_bag`` and ``aten::embedding_bag`` take them.

    Raises ``ValueError`` for a table or keys that no embedding bag may have, and for a table that
    a NIC's descriptor cannot hold.
    """
    given = _UNSAID | dict(zip(_NAMES, args)) | kwargs
    weight, indices, offsets = given["weight"], given["indices"], given["offsets"]
    if not all(type(each) in (torch.Tensor, torch.nn.Parameter) and each.device.type == "cpu"
               for each in (weight, indices, offsets)):
        return "its tensors are not plain ones in the host's memory"
    pooling = _MODES[given["mode"]]
    if pooling == "max":
        return "the NIC pools as sum or mean, not max"
    check_table(weight)
    for name, each in (("indices", indices), ("offsets", offsets)):
        if each.dtype not in _INDICES:
            raise ValueError(f"{name} of an embedding bag must be int32 or int64, "
                             f"not {each.dtype}")
    # A copy: a script may fill the same tensor with its next mini-batch.
    rows = array_of(indices).astype(np.int64)
    lengths = _lengths(array_of(offsets), len(rows), bool(given["include_last_offset"]))
    check_rows(rows, len(weight))
    weights = given["per_sample_weights"]
    weights = None if weights is None else array_of(weights)
    padding = given["padding_idx"]
    if padding is not None and padding >= 0 and (rows == padding).any():
        kept = rows != padding
        lengths = np.bincount(np.repeat(np.arange(len(lengths)), lengths)[kept],
                              minlength=len(lengths))
        rows, weights = rows[kept], None if weights is None else weights[kept]
    return Bags(weight, rows, lengths, pooling,
                None if weights is None else weights.astype(np.float32))


def check_table(weight: torch.Tensor) -> None:
    """Raise ``ValueError`` for a table that no NIC's descriptor holds."""
    if weight.dtype != torch.float32:
        raise ValueError(f"the table of an embedding bag must be torch.float32, "
                         f"not {weight.dtype}")
    if not 1 <= weight.shape[1] <= DIMENSIONS:
        raise ValueError(f"vectors of a table must have between 1 and {DIMENSIONS} values, "
                         f"not {weight.shape[1]}")
    most = (1 << ROW_BITS) - 1
    if not 1 <= len(weight) <= most:
        raise ValueError(f"rows of a table must be between 1 and {most}, not {len(weight)}")


def check_rows(rows: np.ndarray, count: int) -> None:
    """Raise ``ValueError`` where one of ``rows`` is not in a table of ``count`` rows."""
    # Seen as unsigned, a negative number is huge.
    if len(rows) and int(rows.view(np.uint64).max()) >= count:
        at = int((rows.view(np.uint64) >= count).argmax())
        raise ValueError(f"index {at} must be between 0 and {count - 1}, the rows of the table, "
                         f"not {rows[at]}")


@lru_cache(maxsize=16)
def one_key(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets and the lengths of so many bags of one key."""
    return np.arange(count), np.ones(count, np.int64)


def _lengths(offsets: np.ndarray, keys: int, last: bool) -> np.ndarray:
    if not last and len(offsets) == keys:
        ascending, ones = one_key(keys)
        if np.array_equal(offsets, ascending):
            return ones
    bounds = offsets.astype(np.int64) if last else np.append(offsets, keys)
    lengths = np.diff(bounds)
    if len(bounds) and (bounds[0] != 0 or bounds[-1] != keys or (lengths < 0).any()):
        raise ValueError(f"offsets must ascend from 0 to the {keys} indices, "
                         f"not {shown(offsets)}")
    return lengths


def shown(values: np.ndarray) -> str:
    """Return the first of ``values``, for a complaint."""
    text = ", ".join(map(str, values[:4].tolist()))
    return f"[{text}{', ...' if len(values) > 4 else ''}]"


def pooled(bags: Bags, vectors: np.ndarray) -> np.ndarray:
    """Return the pooled vectors ``[n, d]`` of bags from the vectors of their keys ``[k, d]``.

    Bit for bit what a NIC makes of them (:func:`host.dlrm.dlrm.pool`); weights, which no NIC has,
    are multiplied before.
    """
    if bags.weights is not None:
        vectors = vectors * bags.weights[:, None]
    if bags.single:
        return vectors  # of a bag of one key, what `pool` gives too
    with np.errstate(over="ignore", invalid="ignore"):
        return pool(vectors, bags.lengths, bags.pooling)
