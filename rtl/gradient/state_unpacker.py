"""State unpacker: buffers the optimizer's states from the host, and outputs them one by one."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import RecordBeat, StateRecord
from rtl.network.record_split import RecordSplit, records_layout
from rtl.stream import StreamFIFO

__all__ = ["StateUnpacker"]


class StateUnpacker(wiring.Component):
    """Split beats of states into records, and buffer beats that arrive faster.

    A beat of ``r`` records takes ``r`` cycles. If beats of two records arrive in every cycle, at
    most a quarter of ``states`` waits as beats. The buffer has room for all of them, so packets of
    an honest host never wait. A host that sends more states blocks its own packets. The order is
    kept.

    Parameters: ``states``, the most states requested at once.

    Ports
    -----
    i: stream of :data:`rtl.formats.RecordBeat`.
    o: stream of :data:`rtl.formats.StateRecord`.
    idle: inactive until an input changes.
    """

    LATENCY = {("beat", "its first record"): 3}
    RATE = "1 record per cycle"

    def __init__(self, states: int):
        self._depth = states // 4 + 2  # the first beat leaves 2 cycles after its arrival
        super().__init__({
            "i": In(stream.Signature(RecordBeat)), "o": Out(stream.Signature(StateRecord)),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fifo = fifo = StreamFIFO(records_layout(0), self._depth)
        m.submodules.split = split = RecordSplit(0)
        wiring.connect(m, fifo.o, split.i)
        m.d.comb += [
            fifo.i.valid.eq(self.i.valid), self.i.ready.eq(fifo.i.ready),
            fifo.i.payload.data.eq(self.i.payload.data),
            fifo.i.payload.records.eq(self.i.payload.records),
            self.o.valid.eq(split.o.valid), split.o.ready.eq(self.o.ready),
            self.o.payload.eq(split.o.payload.record), self.idle.eq(fifo.idle & split.idle),
        ]
        return m
