"""Exact sums of float32, held as integer multiples of 2^-149, as in the hardware."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["ExactSum", "exact_sums", "nearest", "split", "sums_of_bits", "taken"]

_NAN = 0x7FC00000
_INFINITY = 0x7F800000
_LARGEST = 0x7F7FFFFF
_SIGN = 1 << 31
_FIELDS = 255
_MOST_TERMS = 1 << 38


@dataclass(frozen=True)
class ExactSum:
    """The sum of float32 terms.

    Members
    -------
    value: sum of the finite terms in units of 2^-149.
    plus, minus: a term was +inf or -inf; a NaN sets both.
    other: a term was not -0. A zero sum is -0 if all terms were -0, else +0.
    """

    value: int = 0
    plus: bool = False
    minus: bool = False
    other: bool = False

    def __add__(self, more: "ExactSum") -> "ExactSum":
        """Return the sum of the terms of both."""
        return ExactSum(self.value + more.value, self.plus or more.plus, self.minus or more.minus,
                        self.other or more.other)


def exact_sums(values: np.ndarray) -> list[ExactSum]:
    """Return the sum of each column of float32 ``values`` [terms, lanes].

    Raises ``TypeError`` for values of another type, and ``ValueError`` for more than 2^38 terms.
    """
    if values.dtype != np.float32:
        raise TypeError(f"values must be float32, not {values.dtype}")
    if len(values) > _MOST_TERMS:
        raise ValueError(f"values must have at most {_MOST_TERMS} terms, not {len(values)}")
    sums = []
    for bits in np.ascontiguousarray(values.T).view(np.uint32):
        field = (bits >> 23 & 0xFF).astype(np.int64)
        fraction = (bits & 0x7FFFFF).astype(np.int64)
        negative = bits >= _SIGN
        special, nan = field == _FIELDS, (field == _FIELDS) & (fraction != 0)
        significand = np.where(special, 0, fraction | (field != 0).astype(np.int64) << 23)
        # Sums of terms with the same exponent field are below 2^63.
        by_field = np.zeros(_FIELDS + 1, np.int64)
        np.add.at(by_field, field, np.where(negative, -significand, significand))
        sums.append(ExactSum(
            sum(part << max(0, k - 1) for k, part in enumerate(by_field.tolist())),
            bool((special & (nan | ~negative)).any()), bool((special & (nan | negative)).any()),
            bool((bits != _SIGN).any())))
    return sums


def nearest(total: ExactSum) -> int:
    """Return the bits of the float32 nearest to ``total``: ties to even, NaN is 0x7FC00000."""
    if total.plus or total.minus:
        return _special(total)
    if not total.other:
        return _SIGN
    magnitude = abs(total.value)
    low = max(0, magnitude.bit_length() - 24)
    significand, left = magnitude >> low, magnitude & (1 << low) - 1
    half = (1 << low) // 2
    significand += left > half or (left == half > 0 and significand & 1)
    # The hidden bit and a rounding carry add to the exponent field.
    return min((low << 23) + significand, _INFINITY) | (_SIGN if total.value < 0 else 0)


def taken(total: ExactSum) -> tuple[int, ExactSum]:
    """Return the bits of the finite float32 nearest to ``total``, and the remainder.

    An infinity or NaN leaves no remainder; the remainder is empty if its ``value`` is 0.
    """
    term = nearest(total)
    if total.plus or total.minus:
        return term, ExactSum(other=True)
    if term & ~_SIGN == _INFINITY:
        term = term & _SIGN | _LARGEST
    return term, ExactSum(total.value - _value(term), other=total.other)


def split(total: ExactSum) -> list[int]:
    """Return the bits of the float32 values whose exact sum is ``total``, largest first.

    Each value is the finite float32 nearest to the remainder. An infinity or NaN is the only value.
    """
    term, left = taken(total)
    terms = [term]
    while left.value:
        term, left = taken(left)
        terms.append(term)
    return terms


def sums_of_bits(terms: Sequence[int]) -> ExactSum:
    """Return the sum of float32 ``terms``, given as bits."""
    return exact_sums(np.array(terms, np.uint32).view(np.float32)[:, None])[0]


def _special(total: ExactSum) -> int:
    if total.plus and total.minus:
        return _NAN
    return _INFINITY | (_SIGN if total.minus else 0)


def _value(term: int) -> int:
    field, fraction = term >> 23 & 0xFF, term & 0x7FFFFF
    magnitude = (fraction | (field > 0) << 23) << max(0, field - 1)
    return -magnitude if term & _SIGN else magnitude
