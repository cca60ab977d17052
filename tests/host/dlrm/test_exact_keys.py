"""Exact sums by key against host.dlrm.exact's integers and math.fsum."""

import math

import numpy as np
import pytest

from host.dlrm.exact import exact_sums, nearest
from host.dlrm.exact_keys import sums_by_key
from tests.rtl.float.exact_cases import KINDS, terms_of_kind

MINUS_ZERO = 0x80000000


def by_hand(keys, values):
    """Return sums key by key, in Python's integers."""
    different = sorted(set(keys.tolist()))
    return different, [[nearest(total) for total in exact_sums(values[keys == key])]
                       for key in different]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("terms, different", [(1, 1), (60, 1), (60, 3), (200, 90)])
def test_sums_are_those_of_whole_numbers(kind, terms, different):
    rng = np.random.default_rng(terms)
    keys = rng.integers(0, different, terms) * 1_000_003 - 5
    values = terms_of_kind(kind, terms, 20, different).view(np.float32)
    got, sums = sums_by_key(keys, values)
    expected, bits = by_hand(keys, values)
    assert got.tolist() == expected and got.dtype == keys.dtype
    assert sums.dtype == np.float32
    assert sums.view(np.uint32).tolist() == bits


def test_kinds_of_all_magnitudes_together():
    """Sum keys whose sums use different limbs, side by side."""
    values = np.concatenate([terms_of_kind(kind, 40, 3, 5) for kind in KINDS]).view(np.float32)
    keys = np.repeat(np.arange(len(KINDS)), 40)
    order = np.random.default_rng(2).permutation(len(keys))
    got, sums = sums_by_key(keys[order], values[order])
    assert (got.tolist(), sums.view(np.uint32).tolist()) == by_hand(keys, values)


@pytest.mark.parametrize("kind", ["subnormal", "huge", "cancelling", "gaussian", "any_finite"])
def test_100_000_terms_on_one_key(kind):
    values = terms_of_kind(kind, 100_000, 1, 1).view(np.float32)
    _, sums = sums_by_key(np.zeros(100_000, np.int64), values)
    with np.errstate(over="ignore"):
        # fsum rounds the exact sum once, to float64.
        assert sums[0, 0] == np.float32(math.fsum(values[:, 0].tolist()))


@pytest.mark.parametrize("terms, bits", [
    ([MINUS_ZERO, MINUS_ZERO], MINUS_ZERO),
    ([MINUS_ZERO, 0], 0),
    ([0x3F800000, 0xBF800000, MINUS_ZERO], 0),
    ([0x7F800000, 0x3F800000], 0x7F800000),
    ([0xFF800000, 0x7F7FFFFF], 0xFF800000),
    ([0x7F800000, 0xFF800000], 0x7FC00000),
    ([0xFFC12345, 0x3F800000], 0x7FC00000),
    ([0x7F7FFFFF, 0x73000000], 0x7F800000),
    ([0x7F7FFFFF, 0x72FFFFFF], 0x7F7FFFFF),
    ([0x7F7FFFFF, 0x7F7FFFFF, 0xFF7FFFFF], 0x7F7FFFFF),
    # Ties, to even; the smallest term decides, above and below.
    ([0x3F800001, 0x33800000], 0x3F800002),
    ([0x3F800000, 0x33800000], 0x3F800000),
    ([0x3F800000, 0x33800000, 0x00000001], 0x3F800001),
    ([0x3F800001, 0x33800000, 0x80000001], 0x3F800001),
    ([0x00800000, 0x80000001], 0x007FFFFF),
])
def test_lanes_by_hand(terms, bits):
    values = np.zeros((len(terms), 3), np.uint32)
    values[:, 1] = terms
    values[0, 2] = 0x40000000
    _, sums = sums_by_key(np.full(len(terms), 7), values.view(np.float32))
    assert sums.view(np.uint32).tolist() == [[0, bits, 0x40000000]]


def test_no_terms_and_bad_input():
    keys, sums = sums_by_key(np.zeros(0, np.int64), np.zeros((0, 16), np.float32))
    assert keys.shape == (0,) and sums.shape == (0, 16)
    with pytest.raises(TypeError, match="values must be float32, not float64"):
        sums_by_key(np.zeros(1, np.int64), np.zeros((1, 1)))
    with pytest.raises(ValueError, match=r"keys must be one per row of values, not of "
                                         r"shape \(2,\) for \(1, 1\)"):
        sums_by_key(np.zeros(2, np.int64), np.zeros((1, 1), np.float32))
