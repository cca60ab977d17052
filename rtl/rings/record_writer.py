"""Record writer: sends single records to the host, one packet of one beat each."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import CREDIT_BITS, STEP_BITS, HostFrame, RawBeat
from rtl.stream import SkidBuffer

__all__ = ["RecordWriter", "ShortPacket"]


def ShortPacket(bits: int) -> data.StructLayout:
    """Layout of a packet with one record of ``bits``."""
    return data.StructLayout({"opcode": 8, "step": STEP_BITS, "address": 64, "record": bits})


class RecordWriter(wiring.Component):
    """Convert each item to a packet to the host: a header, and a beat that begins with the record.

    Parameters: ``bits`` of a record.

    Ports
    -----
    i: stream of :func:`ShortPacket`.
    credit: credit of the headers.
    headers, payload: streams of :data:`rtl.formats.HostFrame` and :data:`rtl.formats.RawBeat`.
    idle: no packet inside.
    """

    LATENCY = {("item", "its header and beat"): 1}
    RATE = "1 packet per cycle"

    def __init__(self, bits: int):
        self._bits = bits
        super().__init__({
            "i": In(stream.Signature(ShortPacket(bits))), "credit": In(CREDIT_BITS),
            "headers": Out(stream.Signature(HostFrame)),
            "payload": Out(stream.Signature(RawBeat)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.headers = headers = SkidBuffer(HostFrame)
        # Buffer only the record: the rest of its beat is zero.
        m.submodules.records = records = SkidBuffer(self._bits)
        wiring.connect(m, headers.o, wiring.flipped(self.headers))
        item, both = self.i.payload, Signal()
        m.d.comb += [
            both.eq(headers.i.ready & records.i.ready), self.i.ready.eq(both),
            headers.i.valid.eq(self.i.valid & both), records.i.valid.eq(self.i.valid & both),
            *(headers.i.payload[name].eq(item[name]) for name in ("opcode", "step", "address")),
            headers.i.payload.count.eq(1), headers.i.payload.credit.eq(self.credit),
            records.i.payload.eq(item.record),
            self.payload.valid.eq(records.o.valid), records.o.ready.eq(self.payload.ready),
            self.payload.payload.data.eq(records.o.payload), self.payload.payload.last.eq(1),
            self.idle.eq(headers.idle & records.idle),
        ]
        return m
