"""Codecs of values on the wire: from float32 to 32-bit lanes and back.

A codec has three members: ``bits``, bits of a value on average, with scales and biases;
``lanes(dimension)``, 32-bit lanes of a vector; ``encode(values)``, from float32 ``[n, dimension]``
to uint32 ``[n, lanes]``; ``decode(words, dimension)``, from uint32 ``[n, at least lanes]`` to
float32 ``[n, dimension]``. NICs move the lanes without reading them.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from host.dlrm.float32 import canonical, fused, quiet
from rtl.config import LANES

__all__ = ["CODECS", "Bfloat16", "Codec", "Float16", "Float32", "Int8"]


class Codec(Protocol):
    """A codec, see the module."""

    @property
    def bits(self) -> int:
        """Bits of a value on average."""
        ...

    def lanes(self, dimension: int) -> int:
        """Return the lanes of a vector of ``dimension`` values."""
        ...

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Return float32 ``values [n, dimension]`` in lanes: uint32 ``[n, lanes]``."""
        ...

    def decode(self, words: np.ndarray, dimension: int) -> np.ndarray:
        """Return the vectors in ``words``, uint32 ``[n, at least lanes]``: float32."""
        ...


class Float32:
    """A float32 in each lane."""

    bits = 32

    def lanes(self, dimension: int) -> int:
        """Return the lanes of a vector of ``dimension`` values."""
        return dimension

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Return the bits of ``values``."""
        return np.ascontiguousarray(values, "<f4").view("<u4")

    def decode(self, words: np.ndarray, dimension: int) -> np.ndarray:
        """Return the values with the bits in ``words``."""
        return np.ascontiguousarray(words, "<u4").view("<f4")[:, :dimension]


class _Halves:
    """Two values of 16 bits in a lane, the first in the low half; a half without a value is 0.

    Values are clamped to the finite range, and then rounded to nearest even.
    """

    bits = 16
    most: ClassVar[np.float32]
    """Largest finite value."""
    nan: ClassVar[int]

    def lanes(self, dimension: int) -> int:
        """Return the lanes of a vector of ``dimension`` values."""
        return -(-dimension // 2)

    @quiet()
    def encode(self, values: np.ndarray) -> np.ndarray:
        """Return float32 ``values [n, dimension]`` in lanes: uint32 ``[n, lanes]``."""
        codes = self._codes(np.clip(values, -self.most, self.most))
        halves = np.zeros((len(values), 2 * self.lanes(values.shape[1])), "<u2")
        halves[:, :values.shape[1]] = np.where(np.isnan(values), np.uint16(self.nan), codes)
        return halves.view("<u4")

    @quiet()
    def decode(self, words: np.ndarray, dimension: int) -> np.ndarray:
        """Return the vectors in ``words``, uint32 ``[n, at least lanes]``: float32."""
        halves = np.ascontiguousarray(words, "<u4").view("<u2")[:, :dimension]
        return canonical(self._values(np.ascontiguousarray(halves)))

    def _codes(self, clamped: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _values(self, codes: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class Float16(_Halves):
    """IEEE 754 binary16, as TorchRec's codec fp16."""

    most, nan = np.float32(65504), 0x7E00

    def _codes(self, clamped: np.ndarray) -> np.ndarray:
        return clamped.astype(np.float16).view(np.uint16)

    def _values(self, codes: np.ndarray) -> np.ndarray:
        return codes.view(np.float16).astype(np.float32)


class Bfloat16(_Halves):
    """The upper half of a float32, as TorchRec's codec bf16."""

    most, nan = np.uint32(0x7F7F0000).view(np.float32), 0x7FC0

    def _codes(self, clamped: np.ndarray) -> np.ndarray:
        bits = np.ascontiguousarray(clamped).view(np.uint32)
        # Half of the last place, less one for an even number: a tie stays even.
        return (bits + (0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)

    def _values(self, codes: np.ndarray) -> np.ndarray:
        return (codes.astype(np.uint32) << 16).view(np.float32)


_PAIR = 2
"""Lanes of a scale and a bias."""


@dataclass(frozen=True)
class Int8:
    """Codes of 8 bits, with a float32 scale and bias for each group of consecutive values.

    A group has the bytes of TorchRec's codec int8 (FBGEMM's FloatToFused8BitRowwiseQuantized): bias
    is the minimum, scale is ``(maximum - minimum) / 255``, and a code is ``(value - bias) * (255 /
    (maximum - minimum + 1e-8))``, rounded to nearest even. A value is ``code * scale + bias``,
    rounded once. A group with an infinity, a NaN or a range beyond float32 becomes NaN.

    Codes fill whole beats of 16 lanes. Scale and bias of each group follow, eight pairs to a beat.
    A vector whose codes and pairs fit in a beat takes one beat: the pairs follow the codes.

    group: values of a group; 0 means the whole vector.
    """

    group: int

    @property
    def bits(self) -> int:
        """Bits of a value on average, for whole groups; without scale and bias of whole vectors."""
        return 8 + (32 * _PAIR // self.group if self.group else 0)

    def lanes(self, dimension: int) -> int:
        """Return the lanes of a vector of ``dimension`` values."""
        return self._pairs_at(dimension) + _PAIR * self._groups(dimension)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Return float32 ``values [n, dimension]`` in lanes: uint32 ``[n, lanes]``."""
        n, dimension = values.shape
        words = np.zeros((n, self.lanes(dimension)), "<u4")
        codes, at = words.view(np.uint8), self._pairs_at(dimension)
        for number, part in enumerate(self._parts(dimension)):
            mine, pair = _quantized(values[:, part])
            codes[:, part] = mine
            words[:, at + _PAIR * number:at + _PAIR * (number + 1)] = pair.view("<u4")
        return words

    def decode(self, words: np.ndarray, dimension: int) -> np.ndarray:
        """Return the vectors in ``words``, uint32 ``[n, at least lanes]``: float32."""
        words = np.ascontiguousarray(words, "<u4")
        codes, pairs = words.view(np.uint8), words.view("<f4")[:, self._pairs_at(dimension):]
        values = np.empty((len(words), dimension), np.float32)
        for number, part in enumerate(self._parts(dimension)):
            scale, bias = (pairs[:, _PAIR * number + place, None] for place in range(_PAIR))
            values[:, part] = fused(codes[:, part].astype(np.float32), scale, bias)
        return values

    def _groups(self, dimension: int) -> int:
        return -(-dimension // self.group) if self.group else 1

    def _parts(self, dimension: int) -> list[slice]:
        size = self.group or dimension
        return [slice(first, min(first + size, dimension)) for first in range(0, dimension, size)]

    def _pairs_at(self, dimension: int) -> int:
        """Return the lane of the first scale."""
        codes = -(-dimension // 4)
        fits = codes + _PAIR * self._groups(dimension) <= LANES
        return codes if fits else -(-codes // LANES) * LANES


@quiet()
def _quantized(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of ``values [n, k]``, uint8 ``[n, k]``, and scale and bias: float32 ``[n,
    2]``."""
    bias = values.min(axis=1)
    spread = values.max(axis=1) - bias
    inverse = np.float32(255) / (spread + np.float32(1e-8))
    exact = (values - bias[:, None]) * inverse[:, None]
    known = np.isfinite(spread)
    codes = np.rint(np.where(known[:, None], exact, 0)).astype(np.uint8)
    pair = np.stack((spread / np.float32(255), bias), axis=1)
    return codes, canonical(np.where(known[:, None], pair, np.float32(np.nan)))


CODECS: dict[str, Codec] = {
    "float32": Float32(), "float16": Float16(), "bfloat16": Bfloat16(), "int8": Int8(32),
    "int8_row": Int8(0)}
"""Codecs by the name of their format."""
