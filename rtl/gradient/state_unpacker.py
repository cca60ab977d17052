"""State unpacker: buffers the optimizer's states from the host, and outputs them one by one."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.config import BEAT_BITS
from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT, RecordBeat, StateRecord
from rtl.stream import StreamFIFO

__all__ = ["StateUnpacker"]

_Held = data.StructLayout({"data": BEAT_BITS, "records": bits_for(RECORDS_PER_BEAT)})


class StateUnpacker(wiring.Component):
    """Split beats of states into records, and buffer beats that come faster.

    A beat of ``r`` records takes ``r`` cycles. Of ``states`` that may be on their way at most a
    quarter wait as beats, if each has two records and there is one a cycle: all have a place here,
    and an honest host's packets never wait. A host that sends more blocks its own packets.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Parameters: ``states``, the most that are requested at once.

    Ports: ``i``, stream of :data:`rtl.formats.RecordBeat`; ``o``, stream of
    :data:`rtl.formats.StateRecord`; ``idle``.
    """

    LATENCY = {("beat", "its first record"): 2}
    RATE = "1 record per cycle"

    def __init__(self, states: int):
        self._depth = states // 4 + 2  # the first leaves 2 cycles after it came
        super().__init__({
            "i": In(stream.Signature(RecordBeat)), "o": Out(stream.Signature(StateRecord)),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fifo = fifo = StreamFIFO(_Held, self._depth)
        index, last, beat = Signal(range(RECORDS_PER_BEAT)), Signal(), fifo.o.payload
        m.d.comb += [
            fifo.i.valid.eq(self.i.valid), self.i.ready.eq(fifo.i.ready),
            fifo.i.payload.data.eq(self.i.payload.data),
            fifo.i.payload.records.eq(self.i.payload.records),
            last.eq((index == RECORDS_PER_BEAT - 1) | (index + 1 >= beat.records)),
            self.o.valid.eq(fifo.o.valid),
            self.o.payload.eq(beat.data.word_select(index, RECORD_BITS)),
            fifo.o.ready.eq(last & self.o.ready),
            self.idle.eq(fifo.idle),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += index.eq(Mux(last, 0, index + 1))
        return m
