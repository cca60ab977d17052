"""Free list: allocates and releases numbers."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.stream import StreamFIFO

__all__ = ["FreeList"]


class FreeList(wiring.Component):
    """Allocate the numbers 0 to ``count`` - 1, each to one user at a time.

    After reset, numbers come from a counter, so no initial fill is necessary. Later, released
    numbers are allocated again, oldest first.

    Parameters: ``count``, at least 2.

    Ports
    -----
    taken: stream of numbers.
    given: ``valid`` and ``number``: a released number; always accepted, because every number has
        room.
    idle: no number is moving to ``taken``.

    Raises ``ValueError`` for a count below 2.
    """

    LATENCY = {("number given back", "the same number"): 2}
    RATE = "1 number out and 1 back per cycle"

    def __init__(self, count: int):
        if not isinstance(count, int) or count < 2:
            raise ValueError(f"count must be an integer of at least 2, not {count!r}")
        self._count = count
        super().__init__({
            "taken": Out(stream.Signature(range(count))),
            "given": In(wiring.Signature({"valid": Out(1), "number": Out(range(count))})),
            "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.returned = returned = StreamFIFO(range(self._count), self._count)
        fresh, fresh_left = Signal(range(self._count)), Signal(init=1)
        m.d.comb += [
            returned.i.valid.eq(self.given.valid), returned.i.payload.eq(self.given.number),
            self.taken.valid.eq(fresh_left | returned.o.valid),
            self.taken.payload.eq(Mux(fresh_left, fresh, returned.o.payload)),
            returned.o.ready.eq(self.taken.ready & ~fresh_left),
            self.idle.eq(returned.idle | returned.o.valid),
        ]
        with m.If(self.taken.ready & fresh_left):
            m.d.sync += [fresh.eq(fresh + 1), fresh_left.eq(fresh != self._count - 1)]
        return m
