"""RowsEnd: each pass is reported; the last one ends its step when the host has written all rows."""

from rtl.formats import ReductionLevel, StepKind, StepRecord
from rtl.gradient.rows_end import RowsEnd
from tests.support import a_bit_apart, made, receiver, sender, simulate

REPORT = RowsEnd.LATENCY["flushed", "reports"]
DONE = RowsEnd.LATENCY["written", "done"]


def report(step: int, passed: int) -> dict:
    record = StepRecord.const({"kind": StepKind.PASSED, "level": ReductionLevel.GLOBAL,
                               "count": passed}).as_bits()
    return {"destination": 0, "step": step, "record": record}


def test_passes_are_reported_and_the_last_one_waits_for_the_host():
    dut, reports, done = made(RowsEnd), [], []

    async def bench(ctx):
        assert ctx.get(dut.idle) and not ctx.get(dut.frozen)
        ctx.set(dut.begins, 1)
        await ctx.tick()
        ctx.set(dut.begins, 0)
        assert ctx.get(dut.frozen)
        # A pass that spilled is only reported.
        await sender(dut.flushed, [{"step": 9, "keys": 4, "passed": 3}])(ctx)
        assert reports == [report(9, 3)] and ctx.get(dut.frozen) and not done
        ctx.set(dut.sent, 5)
        ctx.set(dut.flushed.payload, {"step": 9, "keys": 2, "passed": 0})
        ctx.set(dut.flushed.valid, 1)
        await ctx.tick().repeat(REPORT)
        assert ctx.get(dut.reports.valid)
        # Rows in flight, then unwritten rows: neither clears ``idle``.
        for empty, written, waits in (
                (0, 4, 0), (0, 5, 0), *((1, other, 1) for other in a_bit_apart(5, 32))):
            ctx.set(dut.empty, empty)
            ctx.set(dut.written, written)
            await ctx.tick().repeat(5)
            assert reports[1:] == [report(9, 0)] and not ctx.get(dut.done.valid)
            assert ctx.get(dut.waits) == waits and ctx.get(dut.idle)
            assert not ctx.get(dut.flushed.ready)
        ctx.set(dut.written, 5)
        await ctx.tick()
        assert not ctx.get(dut.idle)
        await ctx.tick().repeat(DONE - 1)
        assert ctx.get(dut.done.valid) and ctx.get(dut.frozen)
        await receiver(dut.done, done, 1)(ctx)
        assert done == [9] and not ctx.get(dut.frozen)
        assert ctx.get(dut.flushed.ready), "the next step may begin"
        await ctx.tick()
        ctx.set(dut.flushed.valid, 0)
        assert ctx.get(dut.idle)

    simulate(dut, bench, background=[receiver(dut.reports, reports, 1 << 30)])
