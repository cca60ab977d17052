"""Packet pool for packets of a single item, each of which closes its buffer."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring

from rtl.network.packet_pool import PacketPool, Place, free_buffers
from rtl.stream import StreamFIFO

__all__ = ["SinglePool"]


class SinglePool(PacketPool):
    """Assign a packet buffer to each item: a :class:`PacketPool` with one position per buffer.

    The cycles are the same, without the state of open buffers.

    Parameters: ``destinations``, ``buffers``, as in :class:`PacketPool`.

    Ports: as in :class:`PacketPool`. ``last`` must be 1. ``limit``, ``time`` and ``timeout`` are
    ignored; ``expired`` and ``stepped`` stay 0.
    """

    RATE = "1 item per cycle"

    def __init__(self, destinations: int, buffers: int):
        super().__init__(destinations, buffers, 1, match_step=True)

    def elaborate(self, platform) -> Module:
        m = Module()
        place = Place(self._buffers, self._positions)
        m.submodules.closed = closed = StreamFIFO(place, self._buffers, style="lutram")
        wiring.connect(m, closed.o, wiring.flipped(self.closed))
        swept, free = free_buffers(m, self._buffers, self.freed)
        inside, item = Signal(), Signal(place, reset_less=True)
        m.d.comb += [
            self.ready.eq(inside & free.valid), self.full.eq(self.ready),
            self.vacant.eq(~inside | self.ready), self.take.eq(swept & self.vacant),
            self.starved.eq(inside & ~free.valid),
            free.ready.eq(self.ready), self.buffer.eq(free.payload),
            # The queue has room for every buffer.
            closed.i.valid.eq(self.ready), closed.i.payload.eq(item),
            closed.i.payload.buffer.eq(self.buffer), closed.i.payload.units.eq(1),
            closed.i.payload.positions.eq(1),
            self.idle.eq(swept & ~inside & closed.idle),
        ]
        with m.If(self.take):
            m.d.sync += [inside.eq(self.valid), item.destination.eq(self.destination),
                         item.step.eq(self.step)]
        return m
