"""Packet multiplexer: several packagers share one frame assembler."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import FrameInfo, RawBeat
from rtl.stream import SkidBuffer

__all__ = ["PacketMux"]


class PacketMux(wiring.Component):
    """Merge ``ports`` pairs of header and payload streams, whole packets at a time, round robin.

    Each pair sends its payloads in the order of its headers. A header with ``empty`` set has no
    payload. A header is chosen in one cycle and taken in the next, so ``ready`` is a register.

    Parameters
    ----------
    ports: number of pairs of input streams.
    header: layout of a header, with a member ``empty``.

    Ports
    -----
    headers, payload: arrays of ``ports`` input streams.
    header_out, payload_out: output streams; payloads in the order of the headers.
    idle: inactive until an input changes.
    """

    LATENCY = {
        ("header", "the same header"): 2,
        ("payload beat of that header", "the same beat"): 1,
        ("header", "its first payload beat"): 3,
    }
    RATE = (
        "1 payload beat per cycle, and a header in 2 cycles, which passes while the payload of an "
        "earlier packet does")
    ORDER = 2
    """Packets whose header has passed and whose payload has not."""

    def __init__(self, ports: int, header: data.StructLayout = FrameInfo):
        if not isinstance(ports, int) or ports < 1:
            raise ValueError(f"ports must be a positive integer, not {ports!r}")
        self._ports, self._header = ports, header
        super().__init__({
            "headers": In(stream.Signature(header)).array(ports),
            "payload": In(stream.Signature(RawBeat)).array(ports),
            "header_out": Out(stream.Signature(header)),
            "payload_out": Out(stream.Signature(RawBeat)),
            "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        n = self._ports
        m.submodules.header = header = SkidBuffer(self._header)
        # One-hot port numbers of the next payloads, in the order of the headers.
        m.submodules.order = order = SkidBuffer(n)
        m.submodules.buffer = buffer = SkidBuffer(RawBeat)
        wiring.connect(m, header.o, wiring.flipped(self.header_out))
        wiring.connect(m, buffer.o, wiring.flipped(self.payload_out))

        # No choice in a cycle that takes a header: room in this cycle remains in the next one.
        offered, empty = Signal(n), Signal(n)
        choice, grant, grant_full = Signal(n), Signal(n), Signal(n)
        later = Signal(n)  # the ports after the last one granted
        granting = Signal()  # a grant exists; a separate register
        m.d.comb += [
            offered.eq(Cat(port.valid for port in self.headers)),
            empty.eq(Cat(port.payload.empty for port in self.headers)),
            choice.eq(Mux((offered & later).any(), _lowest(offered & later), _lowest(offered))),
            header.i.valid.eq(granting), header.i.payload.eq(_chosen(grant, self.headers)),
            order.i.valid.eq(grant_full.any()), order.i.payload.eq(grant_full),
            *(port.ready.eq(grant[k]) for k, port in enumerate(self.headers)),
        ]
        m.d.sync += [grant.eq(0), grant_full.eq(0), granting.eq(0)]
        with m.If(header.i.ready & order.i.ready & ~granting):
            m.d.sync += [grant.eq(choice), grant_full.eq(choice & ~empty),
                         granting.eq(offered.any())]
        with m.If(granting):
            m.d.sync += later.eq(Cat(grant[:k].any() for k in range(n)))

        turn, there, last = Signal(n), Signal(n), Signal(n)
        m.d.comb += [
            turn.eq(order.o.payload),
            there.eq(Cat(port.valid for port in self.payload)),
            last.eq(Cat(port.payload.last for port in self.payload)),
            buffer.i.valid.eq(order.o.valid & (turn & there).any()),
            buffer.i.payload.eq(_chosen(turn, self.payload)),
            order.o.ready.eq(buffer.i.ready & (turn & there & last).any()),
            *(port.ready.eq(buffer.i.ready & order.o.valid & turn[k])
              for k, port in enumerate(self.payload)),
            self.idle.eq(~offered.any() & header.idle & order.idle & buffer.idle),
        ]
        return m


def _lowest(bits: Value) -> Value:
    """Return the lowest set bit of ``bits``, alone."""
    return Value.cast(Cat(bit & ~bits[:k].any() for k, bit in enumerate(bits)))


def _chosen(which: Value, ports) -> Value:
    """Return the payload of the port whose bit of the one-hot ``which`` is set."""
    value = Value.cast(0)
    for bit, port in zip(which, ports):
        payload = Value.cast(port.payload)
        value |= payload & bit.replicate(len(payload))
    return value
