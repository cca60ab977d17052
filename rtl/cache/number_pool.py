"""Number pool: numbers of a free list, reserved before the need for them is known."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.stream import StreamFIFO

__all__ = ["NumberPool"]

AHEAD = 16
"""Numbers that wait in a pool: more than a pipeline can reserve while it decides."""


class NumberPool(wiring.Component):
    """Let a pipeline that cannot stall take numbers: it starts an item only with a reserved number.

    A released reservation can be made again in the next cycle. Numbers keep their order.

    Parameters: ``count``; all numbers are below it.

    Ports
    -----
    numbers: input stream of free numbers.
    free, reserve: a number is available and not reserved, a register; reserve it, only while
        ``free``.
    use: take ``number``, at least two cycles after its reservation.
    unused: release the reservation. Every ``reserve`` must be followed by one ``use`` or
        ``unused``.
    number: the next number.
    idle: no number enters.
    """

    LATENCY = {("number", "free"): 1}
    RATE = "1 number per cycle"

    def __init__(self, count: int):
        self._count = count
        super().__init__({
            "numbers": In(stream.Signature(range(count))),
            "free": Out(1), "reserve": In(1), "use": In(1), "unused": In(1),
            "number": Out(range(count)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fifo = fifo = StreamFIFO(range(self._count), AHEAD)
        wiring.connect(m, wiring.flipped(self.numbers), fifo.i)
        spare, following = Signal(range(AHEAD + 2)), Signal(range(AHEAD + 2))
        came = Signal()
        m.d.comb += [
            came.eq(self.numbers.valid & fifo.i.ready),
            following.eq(spare + came + self.unused - self.reserve),
            fifo.o.ready.eq(self.use), self.number.eq(fifo.o.payload),
            self.idle.eq(~came),
        ]
        m.d.sync += [spare.eq(following), self.free.eq(following != 0)]
        return m
