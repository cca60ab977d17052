"""Query unpacker: buffers query beats from the host, and outputs their records one by one."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.config import BEAT_BITS
from rtl.formats import CREDIT_BITS, RECORD_BITS, RECORDS_PER_BEAT, STEP_BITS, RecordBeat
from rtl.stream import SkidBuffer, StreamFIFO

__all__ = ["QueryItem", "QueryUnpacker"]

_RECORDS_BITS = bits_for(RECORDS_PER_BEAT)


QueryItem = data.StructLayout({"record": RECORD_BITS, "step": STEP_BITS, "gap": 1, "marker": 1})
"""A record. gap: beats before it were dropped. marker: a gap without a record, whose ``step`` is
that of the last dropped beat."""

_Held = data.StructLayout({
    "data": BEAT_BITS, "records": _RECORDS_BITS, "step": STEP_BITS, "gap": 1,
})


class QueryUnpacker(wiring.Component):
    """Buffer the beats that the host sends against credits, and output their records one by one.

    A beat that arrives at a full buffer was sent without a credit. The unpacker drops and counts
    the beat, and sets ``gap`` on the next record, or outputs a marker if no record follows. An open
    sample lost records at the gap, and must not continue with records of another sample.

    Parameters: ``beats``, beats of the buffer.

    Ports
    -----
    i: stream of :data:`rtl.formats.RecordBeat`; always ready.
    o: stream of :data:`QueryItem`.
    consumed: beats whose records have all left, modulo 2^16: the credit of the host.
    dropped: a beat is dropped in this cycle.
    idle: no record and no marker inside.
    """

    LATENCY = {("beat", "its first record"): 4}
    RATE = "1 record per cycle"

    def __init__(self, beats: int):
        self._fifo = StreamFIFO(_Held, beats)
        super().__init__({
            "i": In(stream.Signature(RecordBeat)),
            "o": Out(stream.Signature(QueryItem)),
            "consumed": Out(CREDIT_BITS), "dropped": Out(1), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fifo = fifo = self._fifo
        m.submodules.buffer = buffer = SkidBuffer(QueryItem)
        wiring.connect(m, buffer.o, wiring.flipped(self.o))
        gap, marker, move = Signal(), Signal(), Signal()
        lost_step, marked = Signal(STEP_BITS), Signal(STEP_BITS)  # marked: of the marker
        # Split one beat at a time; the next beat follows without a gap.
        beat, index = Signal(_Held, reset_less=True), Signal(range(RECORDS_PER_BEAT))
        busy, taken, final = Signal(), Signal(), Signal()
        m.d.comb += [
            fifo.i.valid.eq(self.i.valid), self.i.ready.eq(1),
            fifo.i.payload.data.eq(self.i.payload.data),
            fifo.i.payload.records.eq(self.i.payload.records),
            fifo.i.payload.step.eq(self.i.payload.step),
            self.dropped.eq(self.i.valid & ~fifo.i.ready),
            # If the buffer is empty, the gap becomes a marker before any later beat.
            move.eq(gap & fifo.idle & ~busy & ~marker),
            fifo.i.payload.gap.eq(gap & ~move),
            taken.eq(busy & ~marker & buffer.i.ready),
            fifo.o.ready.eq(~busy | (~marker & buffer.i.ready & final)),
            buffer.i.payload.record.eq(beat.data.word_select(index, RECORD_BITS)),
            buffer.i.payload.step.eq(Mux(marker, marked, beat.step)),
            buffer.i.payload.gap.eq(marker | (beat.gap & (index == 0))),
            buffer.i.payload.marker.eq(marker),
            buffer.i.valid.eq(marker | busy),
            self.idle.eq(fifo.idle & ~busy & ~gap & ~marker & buffer.idle),
        ]
        with m.If(buffer.i.ready):
            m.d.sync += marker.eq(0)
        with m.If(taken):
            # Compute early whether the next record is the last of its beat.
            m.d.sync += [index.eq(Mux(final, 0, index + 1)),
                         final.eq((index == RECORDS_PER_BEAT - 2) | (index + 2 >= beat.records))]
            with m.If(final):
                m.d.sync += self.consumed.eq(self.consumed + 1)
        # Load in any case: ``busy`` tells whether a beat arrived.
        with m.If(fifo.o.ready):
            m.d.sync += [beat.eq(fifo.o.payload), busy.eq(fifo.o.valid),
                         final.eq(fifo.o.payload.records <= 1)]
        with m.If(move):
            m.d.sync += [marker.eq(1), gap.eq(0), marked.eq(lost_step)]
        with m.Elif(self.i.valid):
            m.d.sync += gap.eq(self.dropped)
            with m.If(self.dropped):
                m.d.sync += lost_step.eq(self.i.payload.step)
        return m
