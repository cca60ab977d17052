"""Bags of a call of ``aten::_embedding_bag``, in the form that the NICs' hosts use."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch

from host.dlrm.dlrm import pool
from host.samples import segment_indices
from rtl.config import ROW_BITS
from sim.torch.lookups.memory import array_of

__all__ = ["DIMENSIONS", "OUTSIDE", "UNEVEN", "Bags", "bags_of", "in_table", "one_key", "pooled",
           "why_not_table"]

_MODES = ("sum", "mean", "max")
"""Poolings, indexed by the mode numbers of ``aten::_embedding_bag``."""

DIMENSIONS = 256
"""The most values of a vector, see :func:`rtl.config.check_dimension`."""
_ROWS = (1 << ROW_BITS) - 1
"""The most rows of a table."""

UNEVEN = "its offsets do not divide all of its indices into bags"
OUTSIDE = "its indices are not all rows of its table"

_NAMES = ("weight", "indices", "offsets", "scale_grad_by_freq", "mode", "sparse",
          "per_sample_weights", "include_last_offset", "padding_idx")
_UNSAID = {"scale_grad_by_freq": False, "mode": 0, "sparse": False, "per_sample_weights": None,
           "include_last_offset": False, "padding_idx": -1}


@dataclass(frozen=True, eq=False)
class Bags:
    """The bags that a call looks up, one for each sample.

    Members
    -------
    weight: the script's table, float32 ``[rows, d]``.
    rows: row of each key, int64 ``[k]``, bag by bag, without padding.
    lengths: keys of each bag, int64 ``[n]``.
    pooling: ``sum`` or ``mean``.
    weights: weight of each key, float32 ``[k]``; None for bags without weights.
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
        """True if every bag has exactly one key."""
        return self.lengths is one_key(len(self))[1] or bool((self.lengths == 1).all())

    @property
    def dimension(self) -> int:
        """Values of a vector."""
        return self.weight.shape[1]

    def stretched(self, samples: int) -> "Bags":
        """Return a bag for each of ``samples``: each of these bags in turn, for consecutive
        samples."""
        if samples == len(self):
            return self
        if not len(self):
            return replace(self, lengths=np.zeros(samples, np.int64))
        which = np.arange(samples) * len(self) // samples
        keys = segment_indices((np.cumsum(self.lengths) - self.lengths)[which],
                               self.lengths[which])
        return replace(self, rows=self.rows[keys], lengths=self.lengths[which],
                       weights=None if self.weights is None else self.weights[keys])

    def without_rows(self) -> "Bags":
        """Return the same bags with a table that has a shape and no memory."""
        return replace(self, weight=torch.empty(self.weight.shape, device="meta"))


def bags_of(args: Sequence, kwargs: dict, widest: int = DIMENSIONS) -> Bags | str:
    """Return the bags of a call, or in words why NICs do not support it.

    args, kwargs: arguments of ``aten::_embedding_bag`` or ``aten::embedding_bag``. PyTorch has
        already computed the call, and so has rejected wrong arguments.
    widest: the most values of a vector.
    """
    given = _UNSAID | dict(zip(_NAMES, args)) | kwargs
    weight, indices, offsets = given["weight"], given["indices"], given["offsets"]
    weights = given["per_sample_weights"]
    if not all(type(each) in (torch.Tensor, torch.nn.Parameter) and each.device.type == "cpu"
               for each in (weight, indices, offsets, *([] if weights is None else [weights]))):
        return "its tensors must be plain tensors in the host's memory"
    pooling = _MODES[given["mode"]]
    if pooling == "max":
        return "the NIC pools as sum or mean, not max"
    if why := why_not_table(weight, widest):
        return why
    # Copy: a script may fill the same tensor with its next mini-batch.
    rows = array_of(indices).reshape(-1).astype(np.int64)
    lengths = _lengths(array_of(offsets), len(rows), bool(given["include_last_offset"]))
    if lengths is None:
        return UNEVEN
    if not in_table(rows, len(weight)):
        return OUTSIDE
    weights = None if weights is None else array_of(weights)
    padding = given["padding_idx"]
    if padding is not None and padding >= 0 and (rows == padding).any():
        kept = rows != padding
        lengths = np.bincount(np.repeat(np.arange(len(lengths)), lengths)[kept],
                              minlength=len(lengths))
        rows, weights = rows[kept], None if weights is None else weights[kept]
    return Bags(weight, rows, lengths, pooling,
                None if weights is None else weights.astype(np.float32))


def why_not_table(weight: torch.Tensor, widest: int = DIMENSIONS) -> str:
    """Return in words why a NIC's descriptor cannot hold a table; empty if it can.

    widest: the most values of a vector.
    """
    if weight.dtype != torch.float32:
        return f"its rows are {str(weight.dtype).removeprefix('torch.')}, and the NIC's are float32"
    if not 1 <= weight.shape[1] <= widest:
        return f"its vectors have {weight.shape[1]} values, and the NIC's between 1 and {widest}"
    if not 1 <= len(weight) <= _ROWS:
        return f"its table has {len(weight)} rows, and the NIC's between 1 and {_ROWS}"
    return ""


def in_table(rows: np.ndarray, count: int) -> bool:
    """Return True if all ``rows``, int64, are in a table of ``count`` rows."""
    # As unsigned numbers, negative numbers are huge.
    return int(rows.view(np.uint64).max(initial=0)) < count


@lru_cache(maxsize=16)
def one_key(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets and the lengths of ``count`` bags of one key."""
    return np.arange(count), np.ones(count, np.int64)


def _lengths(offsets: np.ndarray, keys: int, last: bool) -> np.ndarray | None:
    """Return the lengths of bags; None if a key is in no bag or in several.

    offsets: begin of each bag, and with ``last`` the end of the last bag.
    keys: number of keys.
    """
    if not last and len(offsets) == keys:
        ascending, ones = one_key(keys)
        if np.array_equal(offsets, ascending):
            return ones
    bounds = offsets.astype(np.int64) if last else np.append(offsets, keys)
    lengths = np.diff(bounds)
    return None if bounds[0] != 0 or bounds[-1] != keys or (lengths < 0).any() else lengths


def pooled(bags: Bags, vectors: np.ndarray) -> np.ndarray:
    """Return the pooled vectors ``[n, d]`` of bags from the vectors of their keys ``[k, d]``.

    The result equals a NIC's bit for bit (:func:`host.dlrm.dlrm.pool`). The host uses the weights,
    because NICs do not multiply.
    """
    if bags.single and bags.pooling == "sum" and bags.weights is None:
        return vectors  # equal to the result of `pool` for bags of one key
    return pool(vectors, bags.lengths, bags.pooling, bags.weights)
