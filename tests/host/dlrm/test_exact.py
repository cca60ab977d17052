"""Exact sums in integers against math.fsum, fractions and numpy."""

import math
from fractions import Fraction

import numpy as np
import pytest

from host.dlrm.exact import ExactSum, exact_sums, nearest, split, sums_of_bits
from tests.rtl.float.cases import NAN, canonical
from tests.rtl.float.exact_cases import KINDS, MINUS_ZERO, terms_of_kind

FINITE = ["gaussian", "any_finite", "subnormal", "huge", "cancelling", "edges"]
UNIT = Fraction(1, 1 << 149)


def fraction(bits: int) -> Fraction:
    return Fraction(float(np.uint32(bits).view(np.float32)))


def sums_of_lanes(bits: np.ndarray) -> list[ExactSum]:
    """Return the sum of each column of ``bits``."""
    sums = exact_sums(bits.view(np.float32))
    assert len(sums) == bits.shape[1] > 0
    return sums


@pytest.mark.parametrize("kind", FINITE)
@pytest.mark.parametrize("terms", [1, 2, 3, 50])
def test_sums_are_those_of_fractions(kind, terms):
    bits = terms_of_kind(kind, terms, 20, terms)
    for lane, total in enumerate(sums_of_lanes(bits)):
        assert total.value * UNIT == sum(map(fraction, bits[:, lane].tolist()))
        assert not total.plus and not total.minus


@pytest.mark.parametrize("kind", FINITE)
def test_100_000_terms_as_fsum_has_them(kind):
    bits = terms_of_kind(kind, 100_000, 2, 1)
    values = bits.view(np.float32)
    for lane, total in enumerate(sums_of_lanes(bits)):
        # fsum rounds the exact sum once, to float64.
        assert math.ldexp(total.value, -149) == math.fsum(values[:, lane].tolist())


@pytest.mark.parametrize("kind", FINITE)
def test_nearest_as_numpy_rounds_what_float64_holds(kind):
    bits = terms_of_kind(kind, 2, 4000, 3)
    exact = 0
    for lane, total in enumerate(sums_of_lanes(bits)):
        value = math.ldexp(total.value, -149)
        if int(math.ldexp(value, 149)) == total.value and total.value:
            with np.errstate(over="ignore"):
                assert nearest(total) == np.float32(value).view(np.uint32), bits[:, lane]
            exact += 1
    assert exact > 400


@pytest.mark.parametrize("kind", FINITE)
def test_nearest_is_nearest(kind):
    bits = terms_of_kind(kind, 5, 300, 4)
    compared = 0
    for total in sums_of_lanes(bits):
        got = nearest(total)
        if got & 0x7FFFFFFF >= 0x7F7FFFFF or not got & 0x7FFFFFFF:
            continue
        compared += 1
        off = abs(fraction(got) - total.value * UNIT)
        for other in (got - 1, got + 1):
            away = abs(fraction(other) - total.value * UNIT)
            assert off < away or (off == away and got % 2 == 0)
    assert compared > 100


@pytest.mark.parametrize("kind", FINITE)
def test_a_list_adds_up_and_is_short(kind):
    bits = terms_of_kind(kind, 6, 200, 5)
    for total in sums_of_lanes(bits):
        terms = split(total)
        assert sums_of_bits(terms) == total
        # Each further term is at least 25 bits lower.
        assert len(terms) <= 12 if abs(total.value) < 1 << 277 else len(terms) <= 18


def test_gradients_take_one_or_two_terms():
    values = np.random.default_rng(0).standard_normal((64, 1000)).astype(np.float32)
    lengths = [len(split(total)) for total in exact_sums(values)]
    assert max(lengths) == 2


@pytest.mark.parametrize("terms, bits, listed", [
    ([MINUS_ZERO], MINUS_ZERO, [MINUS_ZERO]),
    ([MINUS_ZERO, MINUS_ZERO], MINUS_ZERO, [MINUS_ZERO]),
    ([MINUS_ZERO, 0], 0, [0]),
    ([0x3F800000, 0xBF800000], 0, [0]),
    ([0xBF800000, 0x3F800000, MINUS_ZERO], 0, [0]),
    ([0x7F800000, 0x3F800000], 0x7F800000, [0x7F800000]),
    ([0xFF800000, 0x7F7FFFFF, 0x7F7FFFFF], 0xFF800000, [0xFF800000]),
    ([0x7F800000, 0xFF800000], NAN, [NAN]),
    ([0xFFC12345], NAN, [NAN]),
    # Beyond the largest number, and by less than half of its last place.
    ([0x7F7FFFFF, 0x7F7FFFFF], 0x7F800000, [0x7F7FFFFF, 0x7F7FFFFF]),
    ([0x7F7FFFFF, 0x73000000], 0x7F800000, [0x7F7FFFFF, 0x73000000]),
    ([0x7F7FFFFF, 0x72FFFFFF], 0x7F7FFFFF, [0x7F7FFFFF, 0x72FFFFFF]),
    ([0x7F7FFFFF, 0x7F7FFFFF, 0xFF7FFFFF], 0x7F7FFFFF, [0x7F7FFFFF]),
    # A tie, to even and then towards the subtracted term.
    ([0x3F800001, 0x33800000], 0x3F800002, [0x3F800002, 0xB3800000]),
    ([0x3F800000, 0x33800000], 0x3F800000, [0x3F800000, 0x33800000]),
    ([0x3F800000, 0x33800000, 0x00000001], 0x3F800001, [0x3F800001, 0xB3800000, 0x00000001]),
    ([0x00800000, 0x80000001], 0x007FFFFF, [0x007FFFFF]),
])
def test_by_hand(terms, bits, listed):
    total = sums_of_bits(terms)
    assert nearest(total) == bits
    assert split(total) == listed


@pytest.mark.parametrize("kind", KINDS)
def test_parts_and_orders_do_not_matter(kind):
    values = terms_of_kind(kind, 60, 8, 7).view(np.float32)
    whole = exact_sums(values)
    assert exact_sums(values[::-1]) == whole
    parts = [exact_sums(values[part::3]) for part in range(3)]
    assert [a + b + c for a, b, c in zip(*parts)] == whole
    # The compressed terms of a part have the same sum.
    for lane, total in enumerate(whole):
        sent = [term for part in parts for term in split(part[lane])]
        assert nearest(sums_of_bits(sent)) == nearest(total)
        if not total.plus and not total.minus:
            assert sums_of_bits(sent) == total


@pytest.mark.parametrize("kind", KINDS)
def test_one_term_is_itself(kind):
    values = terms_of_kind(kind, 1, 200, 8).view(np.float32)
    assert [nearest(total) for total in exact_sums(values)] == canonical(values)[0].tolist()


def test_no_terms():
    assert exact_sums(np.zeros((0, 2), np.float32)) == [ExactSum()] * 2


def test_bad_input():
    with pytest.raises(TypeError, match="values must be float32, not float64"):
        exact_sums(np.zeros((1, 1)))
