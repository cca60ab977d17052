"""Operands of a code converter, a beat of codes per scale and bias, and their exact results."""

import numpy as np

from host.dlrm.exact import ExactSum, nearest, sums_of_bits
from host.dlrm.float32 import fused, quiet
from rtl.config import LANES
from tests.rtl.float.cases import NAN, SIGN, canonical, directed_pairs

__all__ = ["EDGE_CODES", "beats_of_codes", "directed_codes", "exact_value", "fused_values",
           "random_codes", "twice_rounded"]

EDGE_CODES = np.array([0, 1, 2, 3, 5, 15, 16, 64, 85, 127, 128, 129, 170, 253, 254, 255], np.uint8)

Operands = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Codes uint8 ``[n, 16]``, and the bits of scales and biases, uint32 ``[n]``."""


def directed_codes() -> Operands:
    """Return each of :func:`directed_pairs` as scale and bias, with :data:`EDGE_CODES`."""
    pairs = directed_pairs()
    return np.tile(EDGE_CODES, (len(pairs), 1)), pairs[:, 0], pairs[:, 1]


@quiet()
def random_codes(count: int, seed: int) -> Operands:
    """Return ``count`` rows of operands; most have products close to the bias.

    Eighths of the rows: random bits; close exponents; few bits in each significand too, for ties; a
    bias that cancels a product of few bits, or all of a product but some last places; half a last
    place beside a product; subnormals; sums around infinity.
    """
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 256, (count, LANES), np.uint8)
    codes[::2, :4] = rng.choice(EDGE_CODES, codes[::2, :4].shape)
    scale, bias = rng.integers(0, 1 << 32, (2, count), np.uint32)
    eighths = np.array_split(np.arange(count), 8)
    close = np.concatenate(eighths[1:3])
    bias[close] = _with_field(bias[close], (scale[close] >> 23 & 0xFF).astype(np.int64)
                              + rng.integers(-30, 46, len(close)))
    short = eighths[2]
    scale[short] &= np.uint32(0xFFFFFFFF) << rng.integers(8, 24, len(short), np.uint32)
    bias[short] &= np.uint32(0xFFFFFFFF) << rng.integers(0, 24, len(short), np.uint32)
    # A product is a number of at most 32 bits, so float64 represents it exactly.
    near, last = np.concatenate(eighths[3:5]), eighths[4]
    scale[eighths[3]] &= np.uint32(0xFFFFFF00)
    product = codes[near, 0].astype(np.float64) * scale[near].view(np.float32)
    bias[near] = (-product).astype(np.float32).view(np.uint32)
    bias[last] += rng.choice(np.array([0, 1, 2, 3, 255], np.uint32), len(last))
    codes[near, 1] = codes[near, 0] ^ 1
    # Half a last place of a product's float32, or a little more or less.
    half = eighths[5]
    product = codes[half, 0].astype(np.float64) * scale[half].view(np.float32)
    field = product.astype(np.float32).view(np.uint32) >> 23 & 0xFF
    bias[half] = _with_field(rng.choice(np.array([0, 1, 1 << 31, SIGN | 1], np.uint32), len(half)),
                             field.astype(np.int64) - rng.integers(22, 27, len(half)))
    tiny, huge = eighths[6], eighths[7]
    scale[tiny] = _with_field(scale[tiny], rng.integers(-4, 4, len(tiny)))
    bias[tiny] = _with_field(bias[tiny], rng.integers(-4, 12, len(tiny)))
    scale[huge] = _with_field(scale[huge], rng.integers(244, 256, len(huge)))
    bias[huge] = _with_field(bias[huge], rng.integers(248, 256, len(huge)))
    return codes, scale, bias


def _with_field(bits: np.ndarray, field: np.ndarray) -> np.ndarray:
    """Return ``bits`` with other exponent fields, from 0 to 255."""
    return bits & np.uint32(0x807FFFFF) | np.clip(field, 0, 255).astype(np.uint32) << np.uint32(23)


def fused_values(codes: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return the bits of the values, ``[n, 16]``, rounded once."""
    wide = np.broadcast_arrays(codes.astype(np.float32), scale.view(np.float32)[:, None],
                               bias.view(np.float32)[:, None])
    return fused(*map(np.ascontiguousarray, wide)).view(np.uint32)


@quiet()
def twice_rounded(codes: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return the bits of the values with a rounded product."""
    product = codes.astype(np.float32) * scale.view(np.float32)[:, None]
    return canonical(product + bias.view(np.float32)[:, None])


def exact_value(code: int, scale: int, bias: int) -> int:
    """Return the bits of ``code * scale + bias``, computed in integers."""
    factor, added = sums_of_bits([scale]), sums_of_bits([bias])
    if not code and (factor.plus or factor.minus):
        return NAN
    value = code * factor.value
    return nearest(ExactSum(value, factor.plus, factor.minus, bool(value) or scale < SIGN) + added)


def beats_of_codes(codes: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return the operands as words, ``[n, 6]``: codes, scale, bias."""
    return np.concatenate([codes.view("<u4"), scale[:, None], bias[:, None]], axis=1)
