"""Event counters accumulate the events' values, modulo 2^32."""

import pytest
from amaranth.hdl import Fragment, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from rtl.monitor.counters import COUNTER_BITS, WIDE_COUNTER_BITS, CounterLayout, count
from rtl.reset import LEAVES, ResetBranch
from tests.support import simulate


def test_counting():
    layout = CounterLayout("ones", "many")
    m, counters, one, many = Module(), Signal(CounterLayout("ones", "many")), Signal(), Signal(6)
    count(m, counters, ones=one, many=many)
    assert layout.size == 2 * COUNTER_BITS

    async def bench(ctx):
        values = [(1, 5), (0, 63), (1, 0), (0, 0), (1, 17)]
        for first, second in values:
            ctx.set(one, first)
            ctx.set(many, second)
            await ctx.tick()
        assert ctx.get(counters) == {"ones": 3, "many": 85}

    simulate(m, bench)


@pytest.mark.parametrize("bits, wide", [(COUNTER_BITS, ()), (WIDE_COUNTER_BITS, ("sum",))])
def test_wrapping(bits, wide):
    m, counters, step = Module(), Signal(CounterLayout("sum", wide=wide)), Signal(32)
    count(m, counters, sum=step)

    async def bench(ctx):
        ctx.set(step, (1 << 31) + 5)
        await ctx.tick().repeat(5)
        ctx.set(step, 0)
        await ctx.tick()
        assert ctx.get(counters.sum) == 5 * ((1 << 31) + 5) % (1 << bits)

    simulate(m, bench)


def test_an_unknown_counter_is_an_error():
    with pytest.raises(ValueError, match="counter must be one of a, b, not 'c'"):
        count(Module(), Signal(CounterLayout("a", "b")), c=1)


class _Counting(wiring.Component):
    """Counts cycles in the counters ``names``, and shows those of ``parts``."""

    counters: Out(CounterLayout("ones", "long", wide=("long",)))

    def __init__(self, *names: str, parts: tuple["_Counting", ...] = ()):
        super().__init__()
        self.names, self.parts = names, parts

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules += self.parts
        for part in self.parts:
            m.d.comb += self.counters.eq(part.counters)
        count(m, self.counters, **dict.fromkeys(self.names, 1))
        return m


@pytest.mark.parametrize("block, missing", [
    (_Counting("ones"), "long"), (_Counting("long"), "ones"),
    (_Counting(parts=(_Counting("long"),)), "ones")])
def test_a_counter_that_is_driven_nowhere_is_an_error(block, missing):
    with pytest.raises(ValueError, match=f"counter '{missing}' of _Counting is driven nowhere"):
        Fragment.get(ResetBranch(block, Signal(LEAVES)), None)


def test_counters_of_parts_are_driven():
    for block in _Counting("ones", "long"), _Counting(parts=(_Counting("ones", "long"),)):
        Fragment.get(ResetBranch(block, Signal(LEAVES)), None)
