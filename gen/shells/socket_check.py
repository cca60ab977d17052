"""Socket check: compares a packet's source node with its socket."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import Beat, HeaderBeat

__all__ = ["SocketCheck"]


class SocketCheck(wiring.Component):
    """Mark a packet as damaged if ``source`` in its header differs from its socket.

    The UDP stack in front of the NIC compares the sender's addresses and ports with its table of
    sockets, and outputs the matching entry. Entry n is node n, so a node cannot impersonate another
    node. The NIC drops marked packets and counts them in ``errors_mac``.

    No latency, 1 beat per cycle.

    Parameters: ``socket_bits``, width of ``socket``.

    Ports
    -----
    i, o: streams of :data:`rtl.formats.Beat`. The block sets ``err`` on the last beat of a packet.
    socket: table entry of the packet at ``i``.
    """

    def __init__(self, socket_bits: int):
        super().__init__({"i": In(stream.Signature(Beat)), "o": Out(stream.Signature(Beat)),
                          "socket": In(socket_bits)})

    def elaborate(self, platform) -> Module:
        m = Module()
        field = HeaderBeat["ember"]
        start = field.offset + field.shape["source"].offset
        beat, inside, wrong, differs = self.i.payload, Signal(), Signal(), Signal()
        m.d.comb += [
            differs.eq(beat.data[start:start + field.shape["source"].width] != self.socket),
            self.o.valid.eq(self.i.valid), self.i.ready.eq(self.o.ready),
            self.o.payload.eq(beat),
            self.o.payload.err.eq(beat.err | (beat.last & (wrong | (~inside & differs)))),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += inside.eq(~beat.last)
            with m.If(~inside):
                m.d.sync += wrong.eq(differs)
            with m.If(beat.last):
                m.d.sync += wrong.eq(0)
        return m
