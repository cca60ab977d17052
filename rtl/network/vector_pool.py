"""Vector pool: assigns vectors to packet buffers by destination; a packet has vectors of one size.
"""

from amaranth.hdl import Signal
from amaranth.lib.wiring import In

from rtl.formats import BEAT_INDEX_BITS
from rtl.network.packet_pool import PacketPool

__all__ = ["VectorPool"]


class VectorPool(PacketPool):
    """Assign beats of packet buffers to vectors, which may have different sizes.

    A unit is a vector, an item and a position are a beat. A buffer closes

    * before a vector of another size, which costs a cycle;
    * with the vector that makes it full, or by timeout, as in :class:`rtl.network.PacketPool`.

    Parameters: ``destinations``, ``buffers``, ``positions``, see :class:`rtl.network.PacketPool`.

    Ports
    -----
    label: number of the last beat of the offered vector.
    ahead: vectors of this size that a packet takes before its last one. Replaces ``limit``, which
        is not used.
    The other ports: see :class:`rtl.network.PacketPool`.
    """

    def __init__(self, destinations: int, buffers: int, positions: int):
        super().__init__(destinations, buffers, positions, match_step=False,
                         label=BEAT_INDEX_BITS, ahead=In(range(positions + 1)))

    def _compare(self, m, item, state, found, is_open, same, open_next, other):
        ahead, enough, single = self.ahead, Signal(), Signal(reset_less=True)
        m.d.comb += enough.eq((is_open & (state.units + item.last >= ahead))
                              | (~is_open & (item.last >= ahead)))
        filling = ((open_next & same & enough)
                   | (open_next & ~same & (found.units >= ahead)) | (~open_next & (ahead == 0)))
        with m.If(self.take):
            m.d.sync += single.eq(ahead == 0)
        return filling, other, single
