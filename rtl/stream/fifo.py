"""FIFO of stream items in a RAM."""

from amaranth.hdl import Cat, Module, Mux, Shape, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.memory import Ram

__all__ = ["StreamFIFO"]


class StreamFIFO(wiring.Component):
    """First-in first-out queue of ``depth`` items, plus one item in the output register of the RAM.

    ``i.ready``, and the flag that an item can be read, are registers. Counts follow ``valid`` and
    ``ready`` of the other sides a cycle later, off the critical path. ``level`` is one addition
    behind registers.

    Parameters: ``shape`` of an item; ``depth``; ``style`` of the RAM, by default LUTRAM up to 64
    items and block RAM above.

    Ports: ``i`` and ``o``, streams of ``shape``; ``level``, items in the RAM; ``idle``.

    Raises ``ValueError`` for a depth below 2.
    """

    LATENCY = {("item", "the same item"): 2}
    RATE = "1 item per cycle"

    def __init__(self, shape, depth: int, *, style: str | None = None):
        if not isinstance(depth, int) or depth < 2:
            raise ValueError(f"depth must be an integer of at least 2, not {depth!r}")
        self._shape, self._depth = shape, depth
        self._style = style or ("lutram" if depth <= 64 else "bram")
        super().__init__({
            "i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)),
            "level": Out(range(depth + 1)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        depth = self._depth
        m.submodules.ram = ram = Ram(max(1, Shape.cast(self._shape).width), depth,
                                     style=self._style)
        head, tail = Signal(range(depth)), Signal(range(depth))
        some, full, valid = Signal(), Signal(), Signal()
        push, pull = Signal(), Signal()
        m.d.comb += [
            push.eq(self.i.valid & self.i.ready),
            self.i.ready.eq(~full),
            pull.eq(some & (~valid | self.o.ready)),
            ram.write_en.eq(push), ram.write_addr.eq(tail), ram.write_data.eq(self.i.payload),
            ram.read_en.eq(pull), ram.read_addr.eq(head),
            self.o.valid.eq(valid), self.o.payload.eq(ram.read_data),
            self.idle.eq(~some & ~valid),
        ]
        with m.If(push):
            m.d.sync += tail.eq(Mux(tail == depth - 1, 0, tail + 1))
        with m.If(pull):
            m.d.sync += [head.eq(Mux(head == depth - 1, 0, head + 1)), valid.eq(1)]
        with m.Elif(self.o.ready):
            m.d.sync += valid.eq(0)
        # Push and pull arrive late in the cycle, and are counted a cycle later. The number of items
        # is the count plus the push and pull of the previous cycle.
        count, grew, shrank = Signal(range(depth + 1)), Signal(), Signal()

        def holds(number):
            return (((count == number) & ~grew & ~shrank) | ((count == number - 1) & grew)
                    | ((count == number + 1) & shrank))

        m.d.comb += self.level.eq(count + Cat(grew | shrank, shrank).as_signed())
        m.d.sync += [
            grew.eq(push & ~pull), shrank.eq(pull & ~push),
            count.eq(self.level),
            some.eq(push | (some & ~(pull & holds(1)))),
            full.eq((full | (holds(depth - 1) & push)) & ~pull),
        ]
        return m
