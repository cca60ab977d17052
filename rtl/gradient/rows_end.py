"""Rows end: reports passes, and ends a step when the host has written its rows."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import STEP_BITS, OutgoingRecord, ReductionLevel, StepKind, StepRecord
from rtl.gradient.reducer_layouts import Flushed

__all__ = ["RowsEnd"]


class RowsEnd(wiring.Component):
    """Report each pass of the global reduction; after the last pass, wait until its rows are
    written.

    A pass that passed no beat on is the last one of its step. Its ``flushed`` is accepted, which
    allows the reduction to begin the next step, after ``done`` was taken.

    Ports
    -----
    flushed: input stream of :data:`~rtl.gradient.reducer_layouts.Flushed`, after the sums.
    reports: output stream of :data:`rtl.formats.OutgoingRecord` with a ``StepRecord``.
    done: output stream of steps.
    begins: a sum of the step arrives.
    empty: no row is in flight.
    sent, written: row beats and states sent, and written by the host, modulo 2^32.
    frozen: from the cycle after ``begins`` until ``done`` is taken.
    waits: waiting for writes of the host, one cycle late.
    idle: inactive until an input changes; ``written`` takes effect one cycle later.
    """

    LATENCY = {
        ("flushed", "reports"): 1,
        ("written", "done"): 2,
    }

    def __init__(self):
        super().__init__({
            "flushed": In(stream.Signature(Flushed)),
            "reports": Out(stream.Signature(OutgoingRecord)),
            "done": Out(stream.Signature(STEP_BITS)),
            "begins": In(1), "empty": In(1), "sent": In(32), "written": In(32),
            "frozen": Out(1), "waits": Out(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        ended, record, over = self.flushed.payload, Signal(StepRecord), Signal()
        # State of the previous cycle, because the numbers are long: the step has ended; all is
        # written.
        draining, emptied, written = (Signal(name=n) for n in ("draining", "emptied", "written"))
        m.d.comb += [
            record.count.eq(ended.passed), record.kind.eq(StepKind.PASSED),
            record.level.eq(ReductionLevel.GLOBAL), self.reports.payload.record.eq(record),
            self.reports.payload.step.eq(ended.step), self.done.payload.eq(ended.step),
            over.eq(emptied & written), self.waits.eq(draining & emptied & ~written),
        ]
        m.d.sync += [emptied.eq(self.empty), written.eq(self.sent == self.written), draining.eq(0)]
        # A register beside the state, because reports of other blocks wait for it.
        reporting = Signal()
        m.d.comb += self.reports.valid.eq(reporting)
        with m.If(self.begins):
            m.d.sync += self.frozen.eq(1)
        with m.FSM():
            with m.State("WAIT"):
                m.d.comb += self.idle.eq(1)
                m.d.sync += reporting.eq(self.flushed.valid)
                with m.If(self.flushed.valid):
                    m.next = "REPORT"
            with m.State("REPORT"):
                with m.If(self.reports.ready):
                    m.d.sync += reporting.eq(0)
                    with m.If(ended.passed == 0):
                        m.next = "DRAIN"
                    with m.Else():
                        m.next = "TAKE"
            with m.State("DRAIN"):
                # When the last row has just left, the comparison of the numbers is too old.
                m.d.comb += self.idle.eq(~over & (emptied == self.empty))
                m.d.sync += draining.eq(1)
                with m.If(over):
                    m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.done.valid.eq(1)
                with m.If(self.done.ready):
                    m.d.sync += self.frozen.eq(0)
                    m.next = "TAKE"
            with m.State("TAKE"):
                m.d.comb += self.flushed.ready.eq(1)
                m.next = "WAIT"
        return m
