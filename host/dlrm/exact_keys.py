"""Exact sums of float32 by key, each rounded once: :mod:`host.dlrm.exact` for whole arrays.

A float32 is an integer multiple of 2^-149. It is cut into limbs of 28 bits; the limbs of a key's
terms are summed in int64, so that neither order nor grouping matters. Only the result is rounded.
"""

import numpy as np

from host.dlrm.float32 import NAN
from rtl.config import LANES

__all__ = ["sums_by_key"]

_LIMB = 28
_MASK = (1 << _LIMB) - 1
_MOST_TERMS = 1 << 33
"""Maximum number of terms: their limbs sum to less than 2^62 and carry less than 2^29 two limbs up.
"""
_GROWTH = 2
"""Limbs above a term's first: for its shift, and for the carries of the maximum number of terms."""
_FIELDS = 255
_MINUS_ZERO = 1 << 31


def sums_by_key(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct ``keys [n]``, ascending, and the sum of each key's ``values``.

    ``values`` are float32 ``[n, lanes]``. A sum is exact until it is rounded, once, to the nearest
    float32, as in :func:`host.dlrm.exact.nearest`. Infinities and NaN stay in their lane, and a
    zero is +0 unless every term is -0.

    Raises ``TypeError`` for values of another type, and ``ValueError`` for more than 2^33 keys or
    unless there is a key per row of values.
    """
    if values.dtype != np.float32:
        raise TypeError(f"values must be float32, not {values.dtype}")
    if values.ndim != 2 or keys.shape != values.shape[:1]:
        raise ValueError(f"keys must be one per row of values, not of shape {keys.shape!r} "
                         f"for {values.shape!r}")
    if len(keys) > _MOST_TERMS:
        raise ValueError(f"keys must be at most {_MOST_TERMS}, not {len(keys)}")
    if not len(keys):
        return keys.copy(), values.copy()
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    sums = np.empty((len(starts), values.shape[1]), np.float32)
    for low in range(0, values.shape[1], LANES):
        terms = np.ascontiguousarray(values[order, low:low + LANES]).view(np.uint32)
        sums[:, low:low + LANES] = _sums(terms, starts)
    return ordered[starts], sums


def _sums(bits: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the sums of the segments of ``bits [terms, lanes]`` that begin at ``starts``."""
    field = (bits >> np.uint32(23) & np.uint32(0xFF)).astype(np.int64)
    fraction = (bits & np.uint32(0x7FFFFF)).astype(np.int64)
    special = field == _FIELDS
    significand = np.where(special, 0, fraction | (field != 0).astype(np.int64) << 23)
    np.negative(significand, out=significand, where=bits >= _MINUS_ZERO)
    limb, shift = np.divmod(np.maximum(field - 1, 0), _LIMB)
    counted = limb[significand != 0]
    lowest = int(counted.min(initial=_FIELDS))
    limbs = np.zeros((max(0, int(counted.max(initial=0)) - lowest) + 1 + _GROWTH, len(starts),
                      bits.shape[1]), np.int64)
    significand <<= shift
    for number in range(len(limbs) - _GROWTH):
        here = np.where(limb == lowest + number, significand, 0)
        limbs[number] += np.add.reduceat(here & _MASK, starts)
        limbs[number + 1] += np.add.reduceat(here >> _LIMB, starts)
    sums = _nearest(limbs, lowest)
    sums[np.logical_and.reduceat(bits == _MINUS_ZERO, starts)] = -0.0
    if special.any():
        # A NaN counts as infinities of both signs.
        negative = bits >= _MINUS_ZERO
        plus, minus = (np.logical_or.reduceat(special & (sign | (fraction != 0)), starts)
                       for sign in (~negative, negative))
        sums[plus] = np.inf
        sums[minus] = -np.inf
        sums[plus & minus] = NAN
    return sums


def _carry(limbs: np.ndarray) -> None:
    """Propagate carries: leave 28 bits in every limb; the last one keeps the sign."""
    for number in range(len(limbs) - 1):
        limbs[number + 1] += limbs[number] >> _LIMB
        limbs[number] &= _MASK


def _nearest(limbs: np.ndarray, lowest: int) -> np.ndarray:
    """Return the float32 nearest to each number; its first limb has weight 2^(28 lowest - 149)."""
    _carry(limbs)
    negative = limbs[-1] < 0
    np.negative(limbs, out=limbs, where=negative)
    _carry(limbs)
    used = limbs != 0
    top = np.maximum(len(limbs) - 1 - used[::-1].argmax(axis=0), 1)
    first, second = (np.take_along_axis(limbs, place[None], axis=0)[0] for place in (top, top - 1))
    head = first << _LIMB | second
    # Two limbs hold at least 5 bits more than a float32: a sticky bit represents all lower limbs.
    head |= (first != 0) & (used.argmax(axis=0) < top - 1)
    # Rounding happens here; scaling by a power of two is exact, or overflows to infinity.
    rounded = head.astype(np.float32).astype(np.float64)
    with np.errstate(over="ignore"):
        sums = np.ldexp(rounded, _LIMB * (top - 1 + lowest) - 149).astype(np.float32)
    return np.where(negative, -sums, sums)
