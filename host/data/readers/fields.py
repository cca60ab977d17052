"""Vectorised parser of separated lines: fields as arrays, and numbers from fields."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from host.data.readers.lines import Chunk, place

__all__ = ["Fields", "decimals", "hexadecimals", "integers", "labels", "split"]

@dataclass(frozen=True)
class Fields:
    """Fields of a chunk: byte ``starts`` and ``lengths``, arrays of equal shape, in file order."""

    chunk: Chunk
    starts: np.ndarray
    lengths: np.ndarray

    def __getitem__(self, index) -> "Fields":
        return Fields(self.chunk, self.starts[index], self.lengths[index])

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


def split(chunk: Chunk, separator: bytes, columns: int, layout: str, short: str = "") -> Fields:
    """Return the fields of a chunk, ``[lines, columns]``, without blank lines.

    Quotes around a field, which may contain separators, are removed.

    Parameters
    ----------
    columns: number of fields of a line.
    layout: description of the fields, for messages.
    short: remedy if every line lacks one field.

    Raises `InputError` for a line with more or fewer fields, and for other quotes.
    """
    data = chunk.bytes
    breaks = (data == separator[0]) | (data == 10)
    quotes = np.flatnonzero(data == ord('"')) if b'"' in chunk.data else None
    if quotes is not None:
        breaks &= ~_inside(chunk, quotes)
    ends = np.flatnonzero(breaks)
    starts = np.empty_like(ends)
    starts[0], starts[1:] = 0, ends[:-1] + 1
    line_ends = np.flatnonzero(data[ends] == 10)
    counts = np.diff(line_ends, prepend=-1)
    wrong = counts != columns
    if wrong.any():
        blank = wrong & (counts == 1) & (starts[line_ends] == ends[line_ends])
        wrong &= ~blank
        if wrong.any():
            line = int(wrong.argmax())
            at, found = int(ends[line_ends[line]]), int(counts[line])
            less = (counts[~blank] == columns - 1).all()
            raise place(chunk, at, f"{found} column{'s' * (found != 1)} instead of {columns} "
                                   f"({layout}){short if less else ''}")
        kept = np.repeat(~blank, counts)
        starts, ends = starts[kept], ends[kept]
    if quotes is not None:
        whole = (ends - starts > 1) & (data[starts] == ord('"')) & (data[ends - 1] == ord('"'))
        others = np.setdiff1d(quotes, (starts[whole], ends[whole] - 1))
        if len(others):
            raise place(chunk, int(others[0]), "a quote inside a field; quotes may only be around "
                                               "a whole field")
        starts, ends = starts + whole, ends - whole
    return Fields(chunk, starts.reshape(-1, columns), (ends - starts).reshape(-1, columns))


def _inside(chunk: Chunk, quotes: np.ndarray) -> np.ndarray:
    """Return which bytes are between a quote and the next quote; ``quotes``: positions of the
    quotes.
    """
    change = np.zeros(len(chunk.data), bool)
    change[quotes] = True
    inside = np.logical_xor.accumulate(change)
    open_ = np.flatnonzero(inside & (chunk.bytes == 10))
    if len(open_):
        at = quotes[np.searchsorted(quotes, open_[0]) - 1]
        raise place(chunk, int(at), "the quote is not closed in its line")
    return inside


def labels(fields: Fields, name: str) -> np.ndarray:
    """Return labels, 0 or 1; `InputError` for any other value."""
    value, good = decimals(fields)
    fields.require(good & (fields.lengths == 1) & (value <= 1),
                   lambda text, at: f"{name} must be 0 or 1, not {text!r}")
    return value


_TOPS = np.uint64(0x8080808080808080)


def _number(fields: Fields, base: int, limit: int, skip: np.ndarray | int = 0,
            ) -> tuple[np.ndarray, np.ndarray]:
    """Return values, and whether each field is 1 to ``limit`` digits after ``skip`` bytes.

    Eight digits are converted at once as the bytes of a word: digits to pairs, pairs to fours,
    fours to the number.
    """
    lengths = fields.lengths - skip
    ends = fields.starts + fields.lengths
    drop = (8 * np.maximum(8 - lengths, 0)).astype(np.uint64)
    word = (fields.chunk.digits[ends] >> drop) << drop  # a shift by 64 gives 0
    wrong = word if base == 16 else word | (word + np.uint64(0x7676767676767676))  # 10 becomes 128
    good = ((wrong & _TOPS) == 0) & (lengths > 0) & (lengths <= limit)
    for width, mask in ((1, 0x00FF00FF00FF00FF), (2, 0x0000FFFF0000FFFF), (4, 0xFFFFFFFF)):
        word = (word * np.uint64(base ** width) + (word >> np.uint64(8 * width))) & np.uint64(mask)
    value = word.view(np.int64)
    more = np.flatnonzero((lengths > 8) & good)
    if len(more):
        _leading(fields, base, lengths, ends, more, value, good)
    return value, good


def _leading(fields: Fields, base: int, lengths: np.ndarray, ends: np.ndarray, which: np.ndarray,
             value: np.ndarray, good: np.ndarray) -> None:
    """Add the digits before the last eight of the fields ``which``, digit by digit."""
    lengths, ends = lengths.reshape(-1)[which], ends.reshape(-1)[which]
    high, fine = np.zeros(len(which), np.int64), np.ones(len(which), bool)
    for k in range(int(lengths.max()), 8, -1):
        inside = k <= lengths
        # The highest of the eight bytes before position p is byte p - 1.
        digit = (fields.chunk.digits[np.where(inside, ends - k + 1, 0)]
                 >> np.uint64(56)).astype(np.int64)
        fine &= ~inside | (digit < base)
        high = np.where(inside, high * base + digit, high)
    value.reshape(-1)[which] += high * base ** 8
    good.reshape(-1)[which] &= fine


def decimals(fields: Fields, limit: int = 18) -> tuple[np.ndarray, np.ndarray]:
    """Return int64 values of unsigned decimals, and which fields are valid."""
    return _number(fields, 10, limit)


def integers(fields: Fields, limit: int = 18) -> tuple[np.ndarray, np.ndarray]:
    """Return int64 values of decimals with an optional minus sign, and which fields are valid."""
    data = fields.chunk.bytes
    first = data[np.minimum(fields.starts, len(data) - 1)]
    minus = (first == ord("-")) & (fields.lengths > 0)
    value, good = _number(fields, 10, limit, minus.astype(np.int64))
    return np.where(minus, -value, value), good


def hexadecimals(fields: Fields, limit: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Return int64 values of up to ``limit`` hexadecimal digits, and which fields are valid."""
    return _number(fields, 16, limit)
