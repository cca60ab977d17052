"""Shifts in a DSP with their sticky bits, and counts of leading zeros."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.float.shift import leading_zeros, product_shifted, shift_factor
from tests.rtl.float.drive import drive
from tests.support import made


class _Shift(wiring.Component):
    """Shift ``value`` right by ``distance`` with :func:`product_shifted`; output the sticky bit
    too."""

    def __init__(self, width: int):
        super().__init__({"value": In(width), "distance": In(5), "o": Out(width), "lost": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        product = self.value * shift_factor(self.distance)
        whole, lost = product_shifted(product, self.distance[4], len(self.value))
        m.d.sync += [self.o.eq(whole), self.lost.eq(lost)]
        return m


class _Zeros(wiring.Component):
    def __init__(self, width: int):
        super().__init__({"value": In(width), "o": Out(5)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.sync += self.o.eq(leading_zeros(self.value))
        return m


def values(width: int) -> list[int]:
    """Return numbers with the highest 1 at each place: alone, among ones, and at random."""
    rng = random.Random(width)
    return [0, *(1 << place | low for place in range(width)
                 for low in (0, (1 << place) - 1, rng.randrange(1 << place)))]


@pytest.mark.parametrize("width", [24, 26])
def test_shift_by_every_distance(width):
    pairs = [(value, distance) for value in values(width)[::2] for distance in range(32)]
    numbers, distances = zip(*pairs)
    results = drive(made(_Shift, width), 1, {"value": numbers, "distance": distances},
                    results=("o", "lost"))
    assert results == [(value >> distance, int(value & (1 << distance) - 1 != 0))
                       for value, distance in pairs]


@pytest.mark.parametrize("width", [1, 4, 15, 16, 23, 27, 31])
def test_zeros_above_the_highest_one(width):
    numbers = values(width)
    assert drive(made(_Zeros, width), 1, {"value": numbers}) == [
        width - value.bit_length() for value in numbers]
