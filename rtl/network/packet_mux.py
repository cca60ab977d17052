"""Packet multiplexer: several packagers share one frame assembler."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import FrameInfo, RawBeat
from rtl.stream import Arbiter, SkidBuffer, StreamFIFO

__all__ = ["PacketMux"]


class PacketMux(wiring.Component):
    """Merge ``ports`` pairs of header and payload streams, whole packets at a time, round robin.

    Each pair gives its payloads in the order of its headers; a header with ``empty`` set has none.
    Latency and rate: see ``LATENCY`` and ``RATE``.

    Ports: ``headers`` and ``payload``, arrays of input streams; ``header_out``, ``payload_out``;
    ``idle``.
    """

    LATENCY = {
        ("header", "the same header"): 1,
        ("payload beat of that header", "the same beat"): 1,
        ("header", "its first payload beat"): 3,
    }
    RATE = (
        "1 payload beat per cycle, and a header passes while the payload of an earlier packet "
        "does")
    ORDER = 4
    """Packets whose headers have passed and whose payload has not."""

    def __init__(self, ports: int):
        if not isinstance(ports, int) or ports < 1:
            raise ValueError(f"ports must be a positive integer, not {ports!r}")
        self._ports = ports
        super().__init__({
            "headers": In(stream.Signature(FrameInfo)).array(ports),
            "payload": In(stream.Signature(RawBeat)).array(ports),
            "header_out": Out(stream.Signature(FrameInfo)),
            "payload_out": Out(stream.Signature(RawBeat)),
            "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        n = self._ports
        m.submodules.arbiter = arbiter = Arbiter(FrameInfo, n)
        # The order of the granted headers: which port's payload comes next.
        m.submodules.order = order = StreamFIFO(range(max(2, n)), self.ORDER, early=True)
        m.submodules.buffer = buffer = SkidBuffer(RawBeat)
        wiring.connect(m, arbiter.o, wiring.flipped(self.header_out))
        wiring.connect(m, buffer.o, wiring.flipped(self.payload_out))
        # A grant with payload needs an entry in the order, so it waits until one is free.
        granted = Signal()
        for k in range(n):
            m.d.comb += [
                arbiter.i[k].payload.eq(self.headers[k].payload),
                arbiter.i[k].valid.eq(self.headers[k].valid & order.i.ready),
                self.headers[k].ready.eq(arbiter.i[k].ready & order.i.ready),
            ]
            with m.If(arbiter.i[k].valid & arbiter.i[k].ready):
                m.d.comb += granted.eq(~self.headers[k].payload.empty)
        m.d.comb += [order.i.valid.eq(granted), order.i.payload.eq(arbiter.grant)]
        with m.Switch(order.o.payload):
            for k in range(n):
                with m.Case(k):
                    m.d.comb += [
                        buffer.i.payload.eq(self.payload[k].payload),
                        buffer.i.valid.eq(self.payload[k].valid & order.o.valid),
                        self.payload[k].ready.eq(buffer.i.ready & order.o.valid),
                        order.o.ready.eq(buffer.i.ready & self.payload[k].valid
                                         & self.payload[k].payload.last),
                    ]
        m.d.comb += self.idle.eq(arbiter.idle & order.idle & buffer.idle)
        return m
