"""ProductRounder: the nearest binary32, ties to even."""

import math

import numpy as np
import pytest

from rtl.float.round import ROUNDER_LATENCY, ProductRounder
from tests.rtl.float.drive import drive
from tests.support import made

NAN, INFINITY, SIGN = 0x7FC00000, 0x7F800000, 1 << 31
SCALES = [-512, -300, -65, -40, *range(-33, 4), 60, 127, *range(249, 258), 300, 511]


def operands():
    """Return tuples of scale, significand and sticky bit: each scale with significands around those
    half-way between two results, and at random."""
    rng = np.random.default_rng(5)
    rows = []
    for scale in SCALES:
        # Bits below the last one of the result, if the highest is 25.
        lost = min(2 + max(0, -scale - 1), 25)
        values = [1 << 25, (1 << 26) - 1, 1 << 24, (1 << 25) - 1]
        values += [(1 << 25 | tail + near) % (1 << 26) for tail in (1 << lost - 1, 3 << lost - 1)
                   for near in (-1, 0, 1)]
        values += (1 << 24 | rng.integers(0, 1 << 26, 12)).tolist()
        rows += [(scale, value, sticky) for value in values for sticky in (0, 1)]
        if scale < 0:
            # A subnormal's significand need not be normalised.
            rows += [(scale, int(value), 0) for value in rng.integers(0, 1 << 24, 4)]
    return rows


def rounded(rows, **flags):
    columns = dict(zip(("scale", "significand", "sticky"), zip(*rows)))
    columns["scale"] = [scale & 0x7FF for scale in columns["scale"]]
    columns |= {name: [value] * len(rows) for name, value in flags.items()}
    late = {name: 1 for name in columns if name != "scale"}
    return drive(made(ProductRounder), 1 + ROUNDER_LATENCY, columns, late=late)


@pytest.mark.few(1)
@pytest.mark.parametrize("sign", [0, 1])
def test_nearest_even(sign):
    rows = operands()
    for row, result in zip(rows, rounded(rows, sign=sign), strict=True):
        scale, significand, sticky = row
        # Exact in 64 bits, so it is rounded once, here.
        exact = math.ldexp(4 * significand + sticky, scale + 2 - 127 - 27)
        with np.errstate(over="ignore", under="ignore"):
            right = int(np.float64(exact).astype(np.float32).view(np.uint32))
        assert result == right | sign * SIGN, f"{row}: {result:08x}, not {right:08x}"


def test_flags_override_the_number():
    rows = [(3, 1 << 25, 0), (-20, 12345, 1), (400, 1 << 24, 0)]
    assert rounded(rows, infinite=1, sign=1) == [INFINITY | SIGN] * 3
    assert rounded(rows, nan=1, infinite=1, sign=1) == [NAN] * 3
