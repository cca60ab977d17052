"""The tree of resets: duration of each reset, registers without reset, and the effect of a
reset."""

import pytest
from amaranth.hdl import (
    ClockSignal,
    Elaboratable,
    Fragment,
    Instance,
    Module,
    ResetSignal,
    Signal,
)

from rtl.gradient.key_walk import KeyWalk
from rtl.reset import LEAVES, LOADS, QUIET_CYCLES, ResetBranch, reset_root
from rtl.shared import Shared
from tests.support import simulate


class _Counter(Elaboratable):
    """Counts cycles, with a register that is reset and a register that is not; ``parts``
    likewise."""

    def __init__(self, *parts: "_Counter", bits: int = 8):
        self.parts = parts
        self.count, self.data = Signal(bits), Signal(bits, reset_less=True)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.sync += [self.count.eq(self.count + 1), self.data.eq(self.data + 1)]
        m.submodules += self.parts
        return m


class _Tree(Elaboratable):
    def __init__(self):
        self.rst, self.quiet = Signal(), Signal()
        self.parts = [_Counter(bits=LOADS - 8), _Counter(bits=LOADS - 8)]
        self.blocks = [_Counter(), _Counter(*self.parts)]

    def elaborate(self, platform) -> Module:
        m = Module()
        root, quiet = reset_root(m, self.rst)
        m.d.comb += self.quiet.eq(quiet)
        for k, block in enumerate(self.blocks):
            m.submodules[f"block{k}"] = ResetBranch(block, root)
        return m


@pytest.mark.parametrize("cycles", [1, 2, 9])
def test_all_are_let_go_together_and_nothing_is_taken_before(cycles):
    dut = _Tree()

    async def bench(ctx):
        await ctx.tick().repeat(20)
        assert ctx.get(dut.parts[0].count) > 10 and not ctx.get(dut.quiet)
        ctx.set(dut.rst, 1)
        await ctx.tick().repeat(cycles)
        ctx.set(dut.rst, 0)
        assert ctx.get(dut.quiet)
        counts, quiet = [], []
        for _ in range(QUIET_CYCLES + 4):
            counts.append([ctx.get(c.count) for c in (*dut.blocks, *dut.parts)])
            quiet.append(ctx.get(dut.quiet))
            await ctx.tick()
        # A block released at the end of cycle n counts in cycle n + 1.
        first = [column.index(0) + column[column.index(0):].index(1) for column in zip(*counts)]
        assert first == [QUIET_CYCLES + 1] * 4
        assert quiet == [1] * QUIET_CYCLES + [0] * 4

    simulate(dut, bench)


def test_data_are_not_reset():
    dut = _Tree()

    async def bench(ctx):
        await ctx.tick().repeat(20)
        ctx.set(dut.rst, 1)
        await ctx.tick().repeat(9)
        assert ctx.get(dut.blocks[0].count) == 0
        assert all(ctx.get(c.data) == 29 for c in (*dut.blocks, *dut.parts))

    simulate(dut, bench)


@pytest.mark.parametrize(("parts", "leaves"), [(0, 1), (1, 1), (2, 2), (5, 5), (50, LEAVES)])
def test_a_register_for_so_many_bits(parts, leaves):
    block = _Counter(*(_Counter(bits=LOADS - 16) for _ in range(parts)))
    fragment = Fragment.get(ResetBranch(block, Signal(LEAVES)), None)
    driven = {signal.name for statement in fragment.statements["sync"]
              if hasattr(statement, "lhs") for signal in statement._lhs_signals()}
    assert {f"rst{k}" for k in range(leaves)} <= driven
    assert f"rst{leaves}" not in driven


def test_a_shared_unit_is_reset_by_a_register_of_its_own():
    """In Verilog the reset is a port; there the NIC's clock domain has no reset."""
    class Platform:
        def shared_instance(self, unit, name, ports):
            return Instance("unit", i_rst=ResetSignal("sync"), i_clk=ClockSignal("sync"))

    class Block(Elaboratable):
        def elaborate(self, platform):
            m = Module()
            m.submodules += [_Counter(), Shared(KeyWalk(4, 2, 1), "walk", has_reset=True)]
            return m

    fragment = Fragment.get(ResetBranch(Block(), Signal(LEAVES)), Platform())
    shared = fragment.subfragments[1][0]
    instance = shared.subfragments[0][0]
    assert instance.ports["rst"][0].name == "rst1"
    assert isinstance(instance.ports["clk"][0], ClockSignal)
