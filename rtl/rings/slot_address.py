"""Slot address: address of a slot of a ring."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.rings.layouts import INDEX_BITS

__all__ = ["Place", "SlotAddress"]

Place = wiring.Signature({
    "base": Out(64), "slot_shift": Out(5), "ring_shift": Out(4)})
"""Location of a ring: its address, log2 of the bytes of a slot, and log2 of its slots, to 15.

Fixed while the ring is in use.
"""


class SlotAddress(wiring.Component):
    """Compute the address of slot ``number`` mod the slots of the ring.

    Ports: ``place``; ``number``; ``address``; ``slots``, slots of the ring.
    """

    LATENCY = {("number", "its address"): 3, ("place", "its slots"): 1}
    RATE = "1 number per cycle"

    def __init__(self):
        super().__init__({"place": In(Place), "number": In(INDEX_BITS), "address": Out(64),
                          "slots": Out(INDEX_BITS)})

    def elaborate(self, platform) -> Module:
        m = Module()
        place, slot = self.place, Signal(INDEX_BITS, reset_less=True)
        offset = Signal(INDEX_BITS + 31, reset_less=True)
        m.d.sync += [
            self.slots.eq(1 << place.ring_shift), slot.eq(self.number & (self.slots - 1)),
            offset.eq(slot << place.slot_shift), self.address.eq(place.base + offset),
        ]
        return m
