"""What stands in a proof for a skid buffer at the edge of a block, or for a queue."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.stream import CreditQueue

__all__ = ["ShortQueue", "Wires"]


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


class ShortQueue(CreditQueue):
    """A queue of two places, without delay, with the ports of a :class:`rtl.stream.CreditQueue`.

    What that shows is a stream of the same items at some later times, which is proved of it. This
    one shows them at the earliest, so that a bounded search reaches further; a bench that takes
    items at any times sees most of the later ones as well.
    """

    def elaborate(self, platform) -> Module:
        m = Module()
        held, items = Signal(2), [Signal(self._shape, name=f"item{k}") for k in range(2)]
        left, following, taken = Signal(2, init=2), Signal(2), Signal()
        m.d.comb += [
            self.o.valid.eq(held.any() | self.i.valid), self.o.payload.eq(
                Mux(held[0], items[0], self.i.payload)),
            taken.eq(self.o.valid & self.o.ready), self.idle.eq(~held.any()),
            following.eq(left + taken + self.unused - self.reserve)]
        m.d.sync += [left.eq(following), self.free.eq(following != 0)]
        with m.If(taken):
            m.d.sync += [
                items[0].eq(Mux(held[1], items[1], self.i.payload)),
                items[1].eq(self.i.payload),
                held.eq(Mux(held[0], Mux(self.i.valid, held, held >> 1), 0))]
        with m.Elif(self.i.valid):
            m.d.sync += held.eq(Cat(1, held))
            with m.If(~held[0]):
                m.d.sync += items[0].eq(self.i.payload)
            with m.Else():
                m.d.sync += items[1].eq(self.i.payload)
        return m
