"""What stands in a proof for a skid buffer at the edge of a block."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Wires"]


class Wires(wiring.Component):
    """A stream led through, with the ports of :class:`rtl.stream.SkidBuffer`.

    A skid buffer keeps items and their order, which is proved of it. So what it shows to the block
    behind it is a stream of the same items at some times or others; a bench, which offers and
    takes items at any times, gives the block without the buffer all of those, and more.
    """

    def __init__(self, shape):
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
                          "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        wiring.connect(m, wiring.flipped(self.i), wiring.flipped(self.o))
        m.d.comb += self.idle.eq(~self.i.valid)
        return m
