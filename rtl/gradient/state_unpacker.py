"""State unpacker: the optimizer's states that the host sends, one by one."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT, RecordBeat, StateRecord
from rtl.stream import SkidBuffer

__all__ = ["StateUnpacker"]


class StateUnpacker(wiring.Component):
    """Take beats of states apart. Latency 1 cycle, throughput 1 record per cycle.

    Ports: ``i``, stream of :data:`rtl.formats.RecordBeat`; ``o``, stream of
    :data:`rtl.formats.StateRecord`; ``idle``.
    """

    i: In(stream.Signature(RecordBeat))
    o: Out(stream.Signature(StateRecord))
    idle: Out(1)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.entry = entry = SkidBuffer(RecordBeat)
        wiring.connect(m, wiring.flipped(self.i), entry.i)
        index, last, beat = Signal(range(RECORDS_PER_BEAT)), Signal(), entry.o.payload
        m.d.comb += [
            last.eq((index == RECORDS_PER_BEAT - 1) | (index + 1 >= beat.records)),
            self.o.valid.eq(entry.o.valid & (beat.records != 0)),
            self.o.payload.eq(beat.data.word_select(index, RECORD_BITS)),
            entry.o.ready.eq(last & (self.o.ready | (beat.records == 0))),
            self.idle.eq(entry.idle),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += index.eq(Mux(last, 0, index + 1))
        return m
