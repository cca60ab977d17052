"""The tree of resets: who is held how long, and that nothing acts before all are let go."""

import pytest
from amaranth.hdl import Elaboratable, Module, Signal

from rtl.reset import BLOCK_CYCLES, QUIET_CYCLES, ResetBranch, reset_root
from tests.support import simulate


class _Counter(Elaboratable):
    """Counts cycles, with a register that is reset and one that is not; ``part`` likewise."""

    def __init__(self, part: "_Counter | None" = None):
        self.part, self.count, self.data = part, Signal(8), Signal(8, reset_less=True)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.sync += [self.count.eq(self.count + 1), self.data.eq(self.data + 1)]
        if self.part is not None:
            reset = Signal(init=1)
            m.d.sync += reset.eq(0)
            m.submodules.part = ResetBranch(self.part, reset)
        return m


class _Tree(Elaboratable):
    def __init__(self):
        self.rst, self.quiet = Signal(), Signal()
        self.part = _Counter()
        self.blocks = [_Counter(), _Counter(self.part)]

    def elaborate(self, platform) -> Module:
        m = Module()
        root, quiet = reset_root(m, self.rst)
        m.d.comb += self.quiet.eq(quiet)
        for k, block in enumerate(self.blocks):
            m.submodules[f"block{k}"] = ResetBranch(block, root)
        return m


@pytest.mark.parametrize("cycles", [1, 2, 9])
def test_who_is_held_how_long(cycles):
    dut = _Tree()

    async def bench(ctx):
        await ctx.tick().repeat(20)
        before = ctx.get(dut.part.count)
        assert before > 10 and not ctx.get(dut.quiet)
        ctx.set(dut.rst, 1)
        await ctx.tick().repeat(cycles)
        ctx.set(dut.rst, 0)
        assert ctx.get(dut.quiet)
        counts, quiet = [], []
        for _ in range(QUIET_CYCLES + 4):
            counts.append([ctx.get(c.count) for c in (*dut.blocks, dut.part)])
            quiet.append(ctx.get(dut.quiet))
            await ctx.tick()
        # One that is let go at the end of cycle n counts in cycle n + 1.
        first = [column.index(0) + column[column.index(0):].index(1) for column in zip(*counts)]
        assert first == [BLOCK_CYCLES + 1, BLOCK_CYCLES + 1, QUIET_CYCLES + 1]
        assert quiet == [1] * QUIET_CYCLES + [0] * 4

    simulate(dut, bench)


def test_data_are_not_reset():
    dut = _Tree()

    async def bench(ctx):
        await ctx.tick().repeat(20)
        ctx.set(dut.rst, 1)
        await ctx.tick().repeat(9)
        assert ctx.get(dut.blocks[0].count) == 0
        assert all(ctx.get(c.data) == 29 for c in (*dut.blocks, dut.part))

    simulate(dut, bench)
