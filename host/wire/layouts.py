"""Records of `rtl.formats` as numpy arrays, packed and unpacked by their Amaranth layouts."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from amaranth.hdl import Shape
from amaranth.lib import data

__all__ = ["field_bits", "pack", "unpack", "word_count"]

WORD_BITS = 32


def word_count(layout: data.StructLayout) -> int:
    """Return the number of 32-bit words of a record."""
    return -(-layout.size // WORD_BITS)


@cache
def field_bits(layout: data.StructLayout) -> dict[str, tuple[int, int]]:
    """Return offset and width in bits of each field; a nested field is named ``a.b``."""
    return dict(_fields(layout, "", 0))


def _fields(layout: data.StructLayout, prefix: str, base: int,
            ) -> Iterator[tuple[str, tuple[int, int]]]:
    for name, field in layout:
        if isinstance(field.shape, data.StructLayout):
            yield from _fields(field.shape, f"{prefix}{name}.", base + field.offset)
        else:
            yield prefix + str(name), (base + field.offset, Shape.cast(field.shape).width)


def _place(layout: data.StructLayout, name: str) -> tuple[int, int]:
    places = field_bits(layout)
    if name not in places:
        raise ValueError(f"field must be one of {', '.join(places)}, not {name!r}")
    return places[name]


def pack(layout: data.StructLayout, count: int | None = None, **values: Any) -> np.ndarray:
    """Return ``count`` records as little-endian uint32 words ``[count, word_count(layout)]``.

    ``values`` are integers or arrays of ``count`` integers by field name (``a__b`` for ``a.b``);
    other fields are 0. ``count`` defaults to the length of the longest array.

    Raises
    ------
    ValueError
        A field is unknown, a value does not fit its field, or a field has more than 64 bits.
    """
    if count is None:
        count = max((len(v) for v in values.values() if np.ndim(v)), default=1)
    words = np.zeros((count, word_count(layout)), np.uint32)
    for name, value in values.items():
        name = name.replace("__", ".")
        offset, width = _place(layout, name)
        if width > 64:
            raise ValueError(f"{name} has {width} bits, at most 64 can be packed as an integer")
        value = np.asarray(value)
        if value.size and not 0 <= int(value.min()) <= int(value.max()) < 1 << width:
            raise ValueError(f"{name} must be between 0 and {(1 << width) - 1}, "
                             f"not {int(value.min())} to {int(value.max())}")
        value = value.astype(np.uint64)
        done = 0
        while done < width:
            word, bit = divmod(offset + done, WORD_BITS)
            part = min(width - done, WORD_BITS - bit)
            bits = value >> np.uint64(done) & np.uint64((1 << part) - 1)
            words[:, word] |= (bits << np.uint64(bit)).astype(np.uint32)
            done += part
    return words


def unpack(layout: data.StructLayout, words: np.ndarray, name: str) -> np.ndarray:
    """Return a field of records: uint64 ``[n]`` from uint32 words ``[n, word_count(layout)]``."""
    offset, width = _place(layout, name)
    if width > 64:
        raise ValueError(f"{name} has {width} bits, at most 64 can be unpacked as an integer")
    value = np.zeros(len(words), np.uint64)
    done = 0
    while done < width:
        word, bit = divmod(offset + done, WORD_BITS)
        part = min(width - done, WORD_BITS - bit)
        bits = words[:, word].astype(np.uint64) >> np.uint64(bit) & np.uint64((1 << part) - 1)
        value |= bits << np.uint64(done)
        done += part
    return value
