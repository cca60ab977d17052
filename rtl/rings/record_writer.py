"""Record writer: packets to the host of one record in one beat."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import CREDIT_BITS, STEP_BITS, HostFrame, RawBeat
from rtl.stream import SkidBuffer

__all__ = ["RecordWriter", "ShortPacket"]


def ShortPacket(bits: int) -> data.StructLayout:
    """Layout of a packet of one record of ``bits``."""
    return data.StructLayout({"opcode": 8, "step": STEP_BITS, "address": 64, "record": bits})


class RecordWriter(wiring.Component):
    """Make each item a packet to the host: its header, and a beat that begins with its record.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Parameters: ``bits`` of a record.

    Ports
    -----
    i: stream of :func:`ShortPacket`.
    credit: that the headers carry.
    headers, payload: streams of :data:`rtl.formats.HostFrame` and :data:`rtl.formats.RawBeat`.
    idle: nothing inside.
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
        # Only the record is buffered: the rest of its beat is zero.
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
