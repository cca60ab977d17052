"""Fields of separated lines as arrays, and numbers out of fields, without a loop over lines."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .lines import Chunk

__all__ = ["Fields", "decimals", "hexadecimals", "integers", "split"]

_DIGITS = np.full(256, 255, np.uint8)
_DIGITS[ord("0"):ord("9") + 1] = np.arange(10)
_HEX = _DIGITS.copy()
_HEX[ord("a"):ord("f") + 1] = _HEX[ord("A"):ord("F") + 1] = np.arange(10, 16)


@dataclass(frozen=True)
class Fields:
    """Fields of a chunk: byte ``starts`` and ``lengths``, arrays of one shape, in file order."""

    chunk: Chunk
    data: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    def __getitem__(self, index) -> "Fields":
        return Fields(self.chunk, self.data, self.starts[index], self.lengths[index])

    def require(self, good: np.ndarray, message: Callable[[str, tuple], str]) -> None:
        """Raise `InputError` at the first field in file order that is not ``good``.

        ``message`` gets the field's text and its index in these arrays.
        """
        if good.all():
            return
        bad = np.flatnonzero(~good.reshape(-1))
        at = bad[self.starts.reshape(-1)[bad].argmin()]
        start, length = self.starts.reshape(-1)[at], self.lengths.reshape(-1)[at]
        text = self.chunk.data[start:start + min(length, 40)].decode("ascii")
        index = tuple(int(i) for i in np.unravel_index(at, good.shape))
        raise place(self.chunk, int(start), message(text, index))


def place(chunk: Chunk, at: int, message: str) -> InputError:
    """Return an error at byte ``at`` of the chunk."""
    line = chunk.first_line + chunk.data.count(b"\n", 0, at)
    return InputError(chunk.path, line, at - chunk.data.rfind(b"\n", 0, at), message)


def split(chunk: Chunk, separator: bytes, columns: int, layout: str) -> Fields:
    """Return the fields of a chunk, ``[lines, columns]``; `InputError` where a line has more or
    fewer. ``layout`` says in that case what the columns are."""
    data = np.frombuffer(chunk.data, np.uint8)
    ends = np.flatnonzero((data == separator[0]) | (data == 10))
    line_ends = np.flatnonzero(data[ends] == 10)
    counts = np.diff(line_ends, prepend=-1)
    if (counts != columns).any():
        line = int((counts != columns).argmax())
        at, found = int(ends[line_ends[line]]), int(counts[line])
        raise place(chunk, at, f"{found} column{'s' * (found != 1)} where {columns} belong "
                               f"({layout})")
    starts = np.empty_like(ends)
    starts[0], starts[1:] = 0, ends[:-1] + 1
    return Fields(chunk, data, starts.reshape(-1, columns), (ends - starts).reshape(-1, columns))


def _number(fields: Fields, digits: np.ndarray, base: int, limit: int, skip: np.ndarray | int = 0,
            ) -> tuple[np.ndarray, np.ndarray]:
    """Return values and whether each field is 1 to ``limit`` digits behind ``skip`` bytes."""
    starts, lengths = fields.starts + skip, fields.lengths - skip
    good = (lengths > 0) & (lengths <= limit)
    value = np.zeros(starts.shape, np.int64)
    for k in range(int(np.minimum(lengths, limit).max(initial=0))):
        inside = k < lengths
        digit = digits[fields.data[np.where(inside, starts + k, 0)]]
        good &= ~inside | (digit < base)
        value = np.where(inside, value * base + digit, value)
    return value, good


def decimals(fields: Fields, limit: int = 18) -> tuple[np.ndarray, np.ndarray]:
    """Return int64 values of unsigned decimals, and which fields are such."""
    return _number(fields, _DIGITS, 10, limit)


def integers(fields: Fields, limit: int = 18) -> tuple[np.ndarray, np.ndarray]:
    """Return int64 values of decimals that may have a minus sign, and which fields are such."""
    first = fields.data[np.minimum(fields.starts, len(fields.data) - 1)]
    minus = (first == ord("-")) & (fields.lengths > 0)
    value, good = _number(fields, _DIGITS, 10, limit, minus.astype(np.int64))
    return np.where(minus, -value, value), good


def hexadecimals(fields: Fields, limit: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Return int64 values of hexadecimals of up to ``limit`` digits, and which fields are such."""
    return _number(fields, _HEX, 16, limit)
