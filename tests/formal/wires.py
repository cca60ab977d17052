"""Substitutes in proofs for a skid buffer at the edge of a block, and for a queue."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.stream import CreditQueue, StreamFIFO

__all__ = ["ShortFIFO", "ShortQueue", "Wires"]


class Wires(wiring.Component):
    """A stream without buffer, with the ports of :class:`rtl.stream.SkidBuffer`.

    A skid buffer keeps items and their order, which has its own proof. Its output to the block is
    therefore a stream of the same items at other times. A bench offers and takes items at any time,
    so it gives the block without the buffer all of these behaviours, and more.
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

    A separate proof shows that the real queue outputs the same items at later times. This queue
    outputs them at the earliest, so a bounded search reaches further. A bench that takes items at
    any time covers most of the later times too.
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


class ShortFIFO(StreamFIFO):
    """A FIFO with the ports and the latency of :class:`rtl.stream.StreamFIFO`, with fewer
    registers.

    Items are in registers and move up, so each content has one state. ``level`` shows only whether
    an item is in transit.
    """

    def elaborate(self, platform) -> Module:
        m = Module()
        held = Signal(self._depth + 2)
        items = [Signal(self._shape, name=f"item{k}") for k in range(self._depth + 1)]
        came, kept, taken = Signal(), Signal(self._shape), Signal()
        m.d.comb += [
            self.i.ready.eq(~held[self._depth - 1]), self.o.valid.eq(held[0]),
            self.o.payload.eq(items[0]), taken.eq(held[0] & self.o.ready),
            self.level.eq(came), self.idle.eq(~held[0] & ~came)]
        m.d.sync += came.eq(self.i.valid & self.i.ready)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += kept.eq(self.i.payload)
        left = Signal.like(held)
        m.d.comb += left.eq(Mux(taken, held >> 1, held))
        m.d.sync += held.eq(Mux(came, Cat(1, left), left))
        for k, item in enumerate(items):
            with m.If(came & ~left[k] & (left[k - 1] if k else 1)):
                m.d.sync += item.eq(kept)
            with m.Elif(taken & (k < self._depth)):
                m.d.sync += item.eq(items[min(k + 1, self._depth)])
        return m
