"""Packet FIFO: stores packets, and forwards them after a verdict at their end."""

from amaranth.hdl import Module, Mux, Shape, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.memory import Ram

__all__ = ["PacketFIFO", "packet_layout"]


def packet_layout(shape) -> data.StructLayout:
    """Layout of an item of a packet FIFO: the item, ``last``, and the verdict ``drop``."""
    return data.StructLayout({"item": shape, "last": 1, "drop": 1})


class PacketFIFO(wiring.Component):
    """FIFO that outputs a packet only if its last item had no ``drop``.

    The FIFO drops a packet of more than ``depth`` items as a whole: otherwise an input that fills
    the RAM without a complete packet would wait for ever.

    Parameters: ``shape`` of an item; ``depth`` in items; ``style`` of the RAM.

    Ports
    -----
    i: stream of :func:`packet_layout`; ``drop`` counts on the last item.
    o: stream of :func:`packet_layout`, ``drop`` always 0.
    dropped: 1 for a cycle when a packet was revoked or was too long.
    overflow: with ``dropped``: the packet was too long.
    level: items in the RAM, including items of incomplete packets.
    idle: no output. An incomplete packet waits for its input and does not count.
    """

    LATENCY = {("last item of a packet", "its first item"): 2}
    RATE = "1 item per cycle"

    def __init__(self, shape, depth: int, *, style: str | None = None):
        if not isinstance(depth, int) or depth < 2:
            raise ValueError(f"depth must be an integer of at least 2, not {depth!r}")
        self._shape, self._depth = shape, depth
        self._style = style or ("lutram" if depth <= 64 else "bram")
        layout = packet_layout(shape)
        super().__init__({
            "i": In(stream.Signature(layout)), "o": Out(stream.Signature(layout)),
            "dropped": Out(1), "overflow": Out(1), "level": Out(range(depth + 1)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        depth = self._depth
        m.submodules.ram = ram = Ram(Shape.cast(self._shape).width + 1, depth, style=self._style)

        def following(pointer):
            return Mux(pointer == depth - 1, 0, pointer + 1)

        head, tail, start = (Signal(range(depth)) for _ in range(3))
        level, ready_level = Signal(range(depth + 1)), Signal(range(depth + 1))
        # Flags beside the levels: items of complete packets exist; the RAM is full.
        some, full = Signal(), Signal()
        swallow, valid = Signal(), Signal()
        take, too_long, write, finish, revoke, pull = (Signal() for _ in range(6))
        m.d.comb += [
            # An incomplete packet that fills the RAM can never drain: drop the rest.
            too_long.eq(~swallow & full & ~some),
            self.i.ready.eq(~full | swallow | ~some),
            take.eq(self.i.valid & self.i.ready),
            write.eq(take & ~swallow & ~too_long),
            finish.eq(write & self.i.payload.last & ~self.i.payload.drop),
            revoke.eq(take & self.i.payload.last & (self.i.payload.drop | swallow | too_long)),
            pull.eq(some & (~valid | self.o.ready)),
            ram.write_en.eq(write), ram.write_addr.eq(tail),
            ram.write_data.eq((self.i.payload.item.as_value() if hasattr(
                self.i.payload.item, "as_value") else self.i.payload.item)
                | (self.i.payload.last << (ram.width - 1))),
            ram.read_en.eq(pull), ram.read_addr.eq(head),
            self.o.valid.eq(valid),
            self.o.payload.item.eq(ram.read_data[:-1]),
            self.o.payload.last.eq(ram.read_data[-1]),
            self.dropped.eq(revoke), self.overflow.eq(revoke & (swallow | too_long)),
            self.level.eq(level), self.idle.eq(~some & ~valid),
        ]
        with m.If(take & too_long & ~self.i.payload.last):
            m.d.sync += swallow.eq(1)
        with m.If(take & self.i.payload.last):
            m.d.sync += swallow.eq(0)
        with m.If(revoke):
            m.d.sync += tail.eq(start)
        with m.Elif(write):
            m.d.sync += tail.eq(following(tail))
            with m.If(finish):
                m.d.sync += start.eq(following(tail))
        m.d.sync += [
            # The departure of an item arrives last in the cycle.
            level.eq(Mux(pull, Mux(revoke, ready_level - 1, Mux(write, level, level - 1)),
                         Mux(revoke, ready_level, Mux(write, level + 1, level)))),
            ready_level.eq(Mux(finish, level + ~pull, ready_level - pull)),
            some.eq(finish | Mux(pull, ready_level != 1, some)),
            full.eq((full | ((level == depth - 1) & write)) & ~pull & ~revoke),
        ]
        with m.If(pull):
            m.d.sync += [head.eq(following(head)), valid.eq(1)]
        with m.Elif(self.o.ready):
            m.d.sync += valid.eq(0)
        return m
