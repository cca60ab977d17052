"""Ring messages: splits the host's packets about steps and flushes."""

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import FlushRecord, RecordBeat, StepOpenRecord
from rtl.network.record_split import RecordSplit
from rtl.rings.layouts import FlushedSlot, RingIndex
from rtl.stream import SkidBuffer

__all__ = ["RingMessages"]


class RingMessages(wiring.Component):
    """Split the packets STEP_OPEN and FLUSHED.

    Ports
    -----
    opens, flushes: streams of :data:`rtl.formats.RecordBeat`.
    steps: stream of :data:`rtl.formats.StepOpenRecord`.
    freed: event :data:`~rtl.rings.layouts.RingIndex`: slots that a step reports as returned; early
        enough for the step itself to use them.
    flushed: event :data:`~rtl.rings.layouts.FlushedSlot`.
    idle: no record inside.
    """

    LATENCY = {("beat", "its first step"): 2, ("beat", "its first flush"): 1,
               ("slots returned", "their step"): 1}
    RATE = RecordSplit.RATE

    def __init__(self):
        super().__init__({
            "opens": In(stream.Signature(RecordBeat)), "flushes": In(stream.Signature(RecordBeat)),
            "steps": Out(stream.Signature(StepOpenRecord)),
            "freed": Out(RingIndex), "flushed": Out(FlushedSlot), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.opens = opens = RecordSplit(0)
        m.submodules.flushes = flushes = RecordSplit(0)
        m.submodules.steps = steps = SkidBuffer(StepOpenRecord)
        wiring.connect(m, steps.o, wiring.flipped(self.steps))
        for source, split in ((self.opens, opens), (self.flushes, flushes)):
            m.d.comb += [
                split.i.valid.eq(source.valid), source.ready.eq(split.i.ready),
                split.i.payload.data.eq(source.payload.data),
                split.i.payload.records.eq(source.payload.records),
            ]
        step = data.View(StepOpenRecord, opens.o.payload.record)
        flush = data.View(FlushRecord, flushes.o.payload.record)
        m.d.comb += [
            steps.i.valid.eq(opens.o.valid), opens.o.ready.eq(steps.i.ready),
            steps.i.payload.eq(step),
            self.freed.valid.eq(opens.o.valid & steps.i.ready), self.freed.index.eq(step.freed),
            flushes.o.ready.eq(1), self.flushed.valid.eq(flushes.o.valid),
            self.flushed.slot.eq(flush.slot), self.flushed.tag.eq(flush.tag),
            self.idle.eq(opens.idle & flushes.idle & steps.idle),
        ]
        return m
