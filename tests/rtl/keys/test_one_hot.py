"""Selection and encoding of one-hot values, of every width that a table may have."""

import pytest
from amaranth.hdl import C, Module, Signal

from rtl.keys.one_hot import any_of, number_of
from tests.support import simulate


@pytest.mark.parametrize("width", range(1, 10))
def test_every_bit(width):
    m, one_hot, some, number = Module(), Signal(width), Signal(), Signal(8)
    kept = Signal()
    m.d.sync += kept.eq(some)
    m.d.comb += [some.eq(any_of(list(one_hot))), number.eq(number_of(one_hot))]

    async def bench(ctx):
        for k in range(width):
            ctx.set(one_hot, 1 << k)
            assert (ctx.get(some), ctx.get(number)) == (1, k)
        ctx.set(one_hot, 0)
        assert (ctx.get(some), ctx.get(number)) == (0, 0)

    simulate(m, bench)


def test_of_none():
    assert any_of([]).value == C(0).value
