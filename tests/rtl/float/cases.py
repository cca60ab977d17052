"""Operands for binary32 units, and the results of numpy."""

import numpy as np

__all__ = [
    "NAN", "SPECIAL", "canonical", "directed_pairs", "numpy_add", "numpy_divide", "numpy_multiply",
    "numpy_quotient", "numpy_root", "random_factors", "random_pairs", "random_quotients",
    "random_ratios", "random_squares", "random_vectors"]

NAN = 0x7FC00000
SIGN = np.uint32(1 << 31)

SPECIAL = np.array([
    (e << 23) | f
    for e in (0, 1, 2, 24, 25, 126, 127, 128, 149, 150, 151, 152, 253, 254, 255)
    for f in (0, 1, 0x400000, 0x3FFFFF, 0x7FFFFF)], dtype=np.uint32)
"""Exponents at and around every edge times significands at and around every tie, positive."""


def directed_pairs() -> np.ndarray:
    """Every :data:`SPECIAL` with every other, of like and of unlike signs: [n, 2]."""
    a, b = (g.ravel() for g in np.meshgrid(SPECIAL, SPECIAL))
    pairs = [np.stack([a, b], axis=1), np.stack([a, b | SIGN], axis=1),
             np.stack([a | SIGN, b], axis=1)]
    return np.concatenate(pairs)


def random_pairs(count: int, seed: int) -> np.ndarray:
    """Random bits; a third with exponents close together, a third of those nearly opposite."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, 1 << 32, (count, 2), dtype=np.uint32)
    near = slice(0, count // 3)
    exponents = (pairs[near, 0] >> 23) & 0xFF
    other = np.clip(exponents.astype(np.int64) + rng.integers(-28, 29, count // 3), 0, 255)
    pairs[near, 1] = (pairs[near, 1] & 0x807FFFFF) | (other.astype(np.uint32) << 23)
    opposite = slice(0, count // 9)
    change = rng.integers(0, 1 << 6, count // 9, dtype=np.uint32)
    pairs[opposite, 1] = pairs[opposite, 0] ^ (0x80000000 | change)
    subnormal = slice(count // 3, count // 2)
    pairs[subnormal] &= np.uint32(0x80FFFFFF)
    return pairs


def random_factors(count: int, seed: int) -> np.ndarray:
    """Random bits; half with products around the subnormals or infinity, many of them ties."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, 1 << 32, (count, 2), dtype=np.uint32)
    edge = slice(0, count // 2)
    total = np.where(rng.integers(0, 4, count // 2) > 0, rng.integers(100, 131, count // 2),
                     rng.integers(378, 384, count // 2))
    first = np.clip(rng.integers(0, 256, count // 2), np.maximum(0, total - 254),
                    np.minimum(254, total))
    for column, exponent in ((0, first), (1, total - first)):
        pairs[edge, column] = (pairs[edge, column] & 0x807FFFFF) | (
            exponent.astype(np.uint32) << 23)
    # Factors of few bits: a product of 25 to 32 bits is often a tie, or close to one.
    short = slice(count // 4, 3 * count // 4)
    masks = np.uint32(0xFFFFFFFF) << rng.integers(8, 20, (len(pairs[short]), 2), dtype=np.uint32)
    pairs[short] &= masks
    # Exponent fields of 0, and fractions of few bits in them.
    subnormal = slice(7 * count // 8, count)
    pairs[subnormal, 0] &= np.uint32(0x807FFFFF)
    pairs[subnormal, 0] >>= rng.integers(0, 23, len(pairs[subnormal]), dtype=np.uint32)
    return pairs


def random_quotients(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return dividends [count, 16] and counts [count]; more than half are a tie or next to one."""
    rng = np.random.default_rng(seed)
    n = np.exp2(rng.uniform(0, 16, count)).astype(np.uint32)
    n[::97] = 1 << rng.integers(0, 16, len(n[::97]), dtype=np.uint32)
    x = rng.integers(0, 1 << 32, (count, 16), dtype=np.uint32)
    # Multiples of n, of half of n, or next to them, of any exponent.
    quotients = rng.integers(1, 1 << 25, (count, 4)) >> rng.integers(0, 24, (count, 4))
    values = np.ldexp((quotients * n[:, None]).astype(np.float64),
                      rng.integers(-155, 90, (count, 4)))
    with np.errstate(all="ignore"):
        x[:, :4] = values.astype(np.float32).view(np.uint32)
    x[:, :2] += rng.integers(-1, 2, (count, 2)).astype(np.uint32)
    # Quotients that are subnormal, or become so.
    x[:, 4:8] &= np.uint32(0x807FFFFF)
    x[:, 5:8] |= rng.integers(0, 18, (count, 3), dtype=np.uint32) << np.uint32(23)
    # Odd multiples of n/2 times the smallest subnormal; counts that are odd leave them no tie.
    odd = rng.integers(0, (1 << 24) // n.astype(np.int64)) * 2 + 1
    x[:, 8] = np.ldexp((odd * n).astype(np.float64), -150).astype(np.float32).view(np.uint32)
    x[:, 9:11] = _next_to_ties(n, rng)
    return x, n


def _next_to_ties(n: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return dividends [len(n), 2] whose quotients are slightly above and slightly below a tie.

    The distance is 1 or 3 parts in an odd ``n`` of half the last place, the least distance of any
    quotient; rounding the tie itself would go the other way.
    """
    dividends = np.empty((len(n), 2), dtype=np.uint32)
    exponents = rng.integers(60, 200, dividends.shape, dtype=np.uint32)
    for k, count in enumerate(n.tolist()):
        count //= count & -count
        for column, sign in enumerate((1, -1)):
            # significand * 2^shift = half * count + rest. In binary, half ends in 01 if the tie
            # would round down to even, so rest must be positive, and in 11 otherwise.
            shift = count.bit_length() + 1
            rest = sign * (1 if count % 4 == 3 else 3)
            significand = rest * pow(2, -shift, count) % count if count > 1 else 0
            significand += -(-((1 << 23) - significand) // count) * count
            dividends[k, column] = (significand - (1 << 23)) % (1 << 23)
    return dividends | (exponents << np.uint32(23))


def random_ratios(count: int, seed: int) -> np.ndarray:
    """Return random bits [count, 2]; most with quotients that are exact, next to a tie or at an
    edge.

    A quotient that is a normal number is never a tie: two significands of 24 bits differ by at
    least 2^-25 of its last place. The operands are therefore made from divisors and wanted
    quotients.
    """
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, 1 << 32, (count, 2), dtype=np.uint32)
    quarters = np.array_split(np.arange(count), 4)
    # Dividends that are a divisor times a number of 25 bits, rounded down or up.
    near = quarters[0]
    divisors = rng.integers(1 << 23, 1 << 24, len(near)) >> rng.integers(0, 24, len(near))
    wanted = rng.integers(1 << 24, 1 << 25, len(near)) >> rng.integers(0, 25, len(near))
    values = np.stack([(divisors * wanted).astype(np.float32), divisors.astype(np.float32)], 1)
    pairs[near] = values.view(np.uint32) + (rng.integers(0, 60, (len(near), 2), dtype=np.uint32)
                                            << np.uint32(23))
    pairs[near, 0] += rng.integers(-1, 2, len(near)).astype(np.uint32)
    # Quotients among the subnormals, many of them ties, and around infinity.
    edge = quarters[1]
    short = np.uint32(0xFFFFFFFF) << rng.integers(0, 23, (len(edge), 2), dtype=np.uint32)
    difference = np.where(rng.integers(0, 4, len(edge)) > 0, rng.integers(-151, -125, len(edge)),
                          rng.integers(126, 130, len(edge)))
    divisor = np.clip(rng.integers(0, 255, len(edge)), np.maximum(0, -difference),
                      np.minimum(254, 254 - difference))
    for column, exponent in ((0, divisor + difference), (1, divisor)):
        pairs[edge, column] &= np.uint32(0x807FFFFF) & short[:, column]
        pairs[edge, column] |= exponent.astype(np.uint32) << np.uint32(23)
    # Subnormal dividends, subnormal divisors, of any length.
    subnormal = quarters[2]
    pairs[subnormal] &= np.where(rng.integers(0, 2, (len(subnormal), 2)),
                                 np.uint32(0x807FFFFF), np.uint32(0xFFFFFFFF))
    pairs[subnormal[::2]] = pairs[subnormal[::2]] >> rng.integers(
        0, 23, (len(subnormal[::2]), 2), dtype=np.uint32) & np.uint32(0x007FFFFF)
    return pairs


def random_squares(count: int, seed: int) -> np.ndarray:
    """Return random bits [count]; most positive, next to a square or half-way between two, or
    subnormal.

    A square of 25 bits whose last bit is 1 has a root half-way between two numbers; the numbers
    next to it have the roots that are hardest to round.
    """
    rng = np.random.default_rng(seed)
    operands = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    half = count // 2
    roots = rng.integers(1 << 24, 1 << 25, half) >> rng.integers(0, 24, half)
    values = np.ldexp((roots * roots).astype(np.float64), 2 * rng.integers(-99, 38, half))
    operands[:half] = values.astype(np.float32).view(np.uint32)
    operands[:half] += rng.integers(-1, 2, half).astype(np.uint32)
    operands[half:half + count // 8] &= np.uint32(0x007FFFFF)
    operands[half:half + count // 16] >>= rng.integers(0, 23, count // 16, dtype=np.uint32)
    operands[:7 * count // 8] &= np.uint32(0x7FFFFFFF)
    return operands


def random_vectors(count: int, dimension: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two times ``count`` vectors: like embeddings, of tiny products, of any bits, ..."""
    rng = np.random.default_rng(seed)
    shape = (2, count, dimension)
    vectors = rng.standard_normal(shape).astype(np.float32)
    # Half of them few bits, so that sums are exact, are ties, and cancel.
    vectors[:, ::2] = np.round(vectors[:, ::2] * 64) / 64
    # Products among the subnormals, and around infinity.
    tiny, huge = slice(count // 4, count // 2), slice(count // 2, 5 * count // 8)
    scale = np.zeros((count, 1), dtype=np.int64)
    scale[tiny] = rng.integers(-76, -60, scale[tiny].shape)
    scale[huge] = rng.integers(60, 65, scale[huge].shape)
    vectors = np.ldexp(vectors, scale)
    bits = np.ascontiguousarray(vectors, dtype=np.float32).view(np.uint32)
    wild = slice(5 * count // 8, 3 * count // 4)
    spread = rng.integers(0, 1 << 32, shape, dtype=np.uint32)
    # Exponents from 64 to 191: their products span the whole range, and few are infinite.
    bits[:, wild] = (spread[:, wild] & 0x9FFFFFFF) + np.uint32(64 << 23)
    anything = slice(count - count // 64, count)
    bits[:, anything] = spread[:, anything]
    bits[:, anything, 1:] &= np.uint32(0xBFFFFFFF)
    return bits[0], bits[1]


def numpy_add(pairs: np.ndarray) -> np.ndarray:
    """Return the sums by numpy, every NaN as 0x7FC00000."""
    return _canonical(np.add, pairs[:, 0], pairs[:, 1])


def numpy_multiply(pairs: np.ndarray) -> np.ndarray:
    """Return the products by numpy, every NaN as 0x7FC00000."""
    return _canonical(np.multiply, pairs[:, 0], pairs[:, 1])


def numpy_divide(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return the quotients of ``x`` [count, 16] by ``n`` by numpy."""
    return _canonical(np.divide, x, n.astype(np.float32).view(np.uint32)[:, None])


def numpy_quotient(pairs: np.ndarray) -> np.ndarray:
    """Return the quotients of ``pairs`` [n, 2] by numpy, every NaN as 0x7FC00000."""
    return _canonical(np.divide, pairs[:, 0], pairs[:, 1])


def numpy_root(operands: np.ndarray) -> np.ndarray:
    """Return the square roots by numpy, every NaN as 0x7FC00000."""
    with np.errstate(all="ignore"):
        return canonical(np.sqrt(operands.view(np.float32)))


def canonical(values: np.ndarray) -> np.ndarray:
    """Return the bits of float32 ``values``, every NaN as 0x7FC00000."""
    return np.where(np.isnan(values), np.uint32(NAN), values.view(np.uint32))


def _canonical(operation, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return canonical(operation(a.view(np.float32), b.view(np.float32)))
