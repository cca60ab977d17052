"""Packet pool for packets of a single item, each of which closes its buffer."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring

from rtl.network.packet_pool import PacketPool, Place, free_buffers
from rtl.stream import StreamFIFO

__all__ = ["SinglePool"]


class SinglePool(PacketPool):
    """Hand out a packet buffer for each item, in the cycles in which a :class:`PacketPool` whose
    buffers have one position does, without its state of open buffers.

    Rate: see ``RATE``.

    Parameters: ``destinations``, ``buffers``, as in :class:`PacketPool`.

    Ports: those of :class:`PacketPool`. ``last`` must be 1; ``limit``, ``time`` and ``timeout`` are
    ignored, ``expired`` and ``stepped`` never happen.
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
        m.d.comb += [
            self.ready.eq(self.valid & swept & free.valid), self.full.eq(self.ready),
            self.starved.eq(self.valid & swept & ~free.valid),
            free.ready.eq(self.ready), self.buffer.eq(free.payload),
        ]
        # The queue has room for every buffer.
        push, pushed = Signal(), Signal(place)
        m.d.sync += [
            push.eq(self.ready), pushed.destination.eq(self.destination),
            pushed.step.eq(self.step), pushed.buffer.eq(self.buffer),
            pushed.units.eq(1), pushed.positions.eq(1),
        ]
        m.d.comb += [
            closed.i.valid.eq(push), closed.i.payload.eq(pushed),
            self.idle.eq(swept & ~push & closed.idle),
        ]
        return m
