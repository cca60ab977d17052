"""Formats of a value on the wire, and vectors in 32-bit lanes.

NICs move vectors in lanes of 32 bits. A lane contains one float32, or two values of 16 bits.
"""

from dataclasses import replace

import numpy as np

from host.dlrm.float32 import canonical, quiet
from host.model import Model, padded

__all__ = ["FORMATS", "decoded", "encoded", "in_lanes", "lanes", "nic_lanes", "nic_vectors",
           "padding_notes", "rounded"]

FORMATS = {"float32": 4, "float16": 2, "bfloat16": 2}
"""Bytes of a value by format."""

_MOST = {"float16": np.float32(65504), "bfloat16": np.uint32(0x7F7F0000).view(np.float32)}
"""Largest finite value of a format of 16 bits."""

_NAN = {"float16": np.uint16(0x7E00), "bfloat16": np.uint16(0x7FC0)}
"""NaN of a format of 16 bits."""


def lanes(dimension: int, name: str) -> int:
    """Return the lanes of a vector of ``dimension`` values in format ``name``.

    In NICs, a vector has at least 4 lanes, see :func:`nic_lanes`.
    """
    return -(-dimension * FORMATS[name] // 4)


def nic_lanes(dimension: int, name: str) -> int:
    """Return the lanes of a vector of ``dimension`` values in NICs: 4, 8 or a multiple of 16."""
    return padded(lanes(dimension, name))


def in_lanes(model: Model, name: str) -> Model:
    """Return ``model`` as NICs see it: dimensions in lanes of vectors in format ``name``."""
    if FORMATS[name] == 4:
        return model
    dimension = lanes(model.dimension, name)
    return replace(model, dimension=dimension, bottom=(*model.bottom[:-1], dimension),
                   dimensions=tuple(lanes(each, name) for each in model.dimensions))


def padding_notes(model: Model, name: str) -> list[str]:
    """Return the sentence on the padding of vectors in NICs, if they pad, for format ``name``."""
    note = in_lanes(model, name).padding
    if note and FORMATS[name] < 4:
        note = note.replace("values", "lanes of two values")
    return [note] if note else []


def rounded(values: np.ndarray, name: str) -> np.ndarray:
    """Return float32 ``values`` rounded to format ``name``, as float32; float32 is unchanged.

    Values are clamped to the finite range, and then rounded to nearest even. A NaN is 0x7FC00000.
    """
    return values if FORMATS[name] == 4 else _values(_codes(values, name), name)


def encoded(values: np.ndarray, name: str) -> np.ndarray:
    """Return float32 vectors ``[n, dimension]`` in format ``name``: uint32 ``[n, lanes]``.

    With 16 bits, the low half of a lane contains the first of two values. A half without a value is
    0.
    """
    if FORMATS[name] == 4:
        return np.ascontiguousarray(values, "<f4").view("<u4")
    return _packed(values, name, lanes(values.shape[1], name))


def nic_vectors(vectors: np.ndarray, name: str) -> np.ndarray:
    """Return float32 ``vectors [n, dimension]`` as NICs take them, in format ``name``, padded with
    zeros: uint32 ``[n, nic_lanes]``; ``vectors`` itself for float32, which the caller pads."""
    if FORMATS[name] == 4:
        return vectors
    return _packed(vectors, name, nic_lanes(vectors.shape[1], name))


def decoded(words: np.ndarray, name: str, dimension: int) -> np.ndarray:
    """Return the vectors in ``words``, as :func:`encoded` returns them: float32 ``[n, dimension]``.

    words: in format ``name``, uint32 ``[n, k]``, or float32 of these bits; ``k`` at least the lanes
        of ``dimension`` values.
    """
    whole = np.ascontiguousarray(words).view("<u4")
    if FORMATS[name] == 4:
        return whole.view("<f4")[:, :dimension]
    return _values(whole.view("<u2")[:, :dimension], name)


def _packed(values: np.ndarray, name: str, width: int) -> np.ndarray:
    """Return float32 ``values [n, dimension]`` in a format of 16 bits: uint32 ``[n, width]``."""
    halves = np.zeros((len(values), 2 * width), "<u2")
    halves[:, :values.shape[1]] = _codes(values, name)
    return halves.view("<u4")


@quiet()
def _codes(values: np.ndarray, name: str) -> np.ndarray:
    """Return the 16 bits of each of float32 ``values``: uint16."""
    clamped = np.clip(values, -_MOST[name], _MOST[name])
    if name == "float16":
        codes = clamped.astype(np.float16).view(np.uint16)
    else:
        bits = np.ascontiguousarray(clamped).view(np.uint32)
        # Half of the last place, less one for an even number: a tie stays even.
        codes = (bits + (0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    absent = np.isnan(values)
    return np.where(absent, _NAN[name], codes) if absent.any() else codes


@quiet()
def _values(codes: np.ndarray, name: str) -> np.ndarray:
    """Return float32 of ``codes``, uint16."""
    if name == "float16":
        return canonical(np.ascontiguousarray(codes).view(np.float16).astype(np.float32))
    return canonical((codes.astype(np.uint32) << 16).view(np.float32))
