"""Steps of a cluster with a failed node."""

from rtl.formats import StepKind
from rtl.training.barrier import StepBarrier
from rtl.training.step_counter import StepCounter
from tests.support import made, simulate

NODES, LOST = 3, 1 << 2


def test_a_step_opens_without_a_lost_node():
    dut = made(StepBarrier, NODES)

    async def drive(ctx):
        for name, value in (("nodes", NODES), ("node", 0)):
            ctx.set(getattr(dut, name), value)
        for port in (dut.steps, dut.reports):
            ctx.set(port.ready, 1)
        await ctx.tick().repeat(3)
        ctx.set(dut.own.payload, 0)
        ctx.set(dut.own.valid, 1)
        await ctx.tick().until(dut.own.ready)
        ctx.set(dut.own.valid, 0)
        ctx.set(dut.received, {"valid": 1, "source": 1, "step": 0})
        await ctx.tick()
        ctx.set(dut.received.valid, 0)
        await ctx.tick().repeat(20)
        assert ctx.get(dut.open_step) == 0 and ctx.get(dut.written) == 0b011
        ctx.set(dut.lost, LOST)
        await ctx.tick().repeat(4)
        assert ctx.get(dut.open_step) == 1 and ctx.get(dut.written) == LOST

    simulate(dut, drive)


def test_a_step_is_complete_without_a_lost_node():
    dut = made(StepCounter, NODES)

    async def drive(ctx):
        for name, value in (("nodes", NODES), ("node", 0)):
            ctx.set(getattr(dut, name), value)
        await ctx.tick().repeat(NODES + 3)
        ctx.set(dut.own_end.payload, {"step": 0, "count": 0})
        ctx.set(dut.own_end.valid, 1)
        ctx.set(dut.steps.payload, {
            "data": StepKind.END << 32, "records": 1, "source": 1, "step": 0, "last": 1})
        ctx.set(dut.steps.valid, 1)
        await ctx.tick()
        ctx.set(dut.own_end.valid, 0)
        ctx.set(dut.steps.valid, 0)
        await ctx.tick().repeat(30)
        assert not ctx.get(dut.complete.valid) and ctx.get(dut.idle)
        ctx.set(dut.lost, LOST)
        await ctx.tick().until(dut.complete.valid)
        assert ctx.get(dut.complete.payload) == 0
        assert ctx.get(dut.counters.bad_counts) == 0

    simulate(dut, drive, limit=200)
