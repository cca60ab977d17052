"""Credit queue: a FIFO whose places are reserved before their items arrive."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.stream.fifo import StreamFIFO

__all__ = ["CreditQueue"]


class CreditQueue(wiring.Component):
    """FIFO behind a pipeline that cannot stall: the source reserves a place before it starts an
    item.

    No register of the pipeline, and no output register of a RAM in it, therefore has to hold. For
    the full rate, ``depth`` must cover the cycles from a reservation until the item has left and
    its place is ``free`` again.

    Parameters: ``shape`` of an item; ``depth``, number of places; ``style`` of the RAM, as of
    :class:`StreamFIFO`.

    Ports
    -----
    free: a place is free; a register. reserve: take it; only while ``free``.
    i: ``valid`` and ``payload`` of an item whose place was reserved in an earlier cycle. unused: a
        reserved place gets no item; it is free again in the next cycle.
    o: output stream of ``shape``.
    idle: no item inside. Reserved places do not count.

    Raises ``ValueError`` for a depth below 2.
    """

    LATENCY = {("item", "the same item"): 2, ("item taken", "its place free"): 2}
    RATE = "1 item per cycle"

    def __init__(self, shape, depth: int, *, style: str | None = None):
        if not isinstance(depth, int) or depth < 2:
            raise ValueError(f"depth must be an integer of at least 2, not {depth!r}")
        self._shape, self._depth, self._style = shape, depth, style
        super().__init__({
            "free": Out(1, init=1), "reserve": In(1), "unused": In(1),
            "i": In(wiring.Signature({"valid": Out(1), "payload": Out(shape)})),
            "o": Out(stream.Signature(shape)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fifo = fifo = StreamFIFO(self._shape, self._depth, style=self._style)
        wiring.connect(m, fifo.o, wiring.flipped(self.o))
        left = Signal(range(self._depth + 1), init=self._depth)
        rest, returned = Signal.like(left), Signal()
        m.d.comb += [
            fifo.i.valid.eq(self.i.valid), fifo.i.payload.eq(self.i.payload),
            rest.eq(left + returned + self.unused),
            self.idle.eq(fifo.idle & ~returned),
        ]
        # ``ready`` arrives late in the cycle, so a place counts as free a cycle later. ``reserve``
        # is late too, and selects between two prepared answers.
        m.d.sync += [returned.eq(self.o.valid & self.o.ready), left.eq(rest - self.reserve),
                     self.free.eq(Mux(self.reserve, rest[1:].any(), rest.any()))]
        return m
