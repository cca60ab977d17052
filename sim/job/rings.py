"""Addresses of the rings of request lists and vectors in GPU memory."""

from dataclasses import dataclass

from amaranth.utils import ceil_log2

from rtl.config import NicConfig
from rtl.formats import BEAT_BYTES

__all__ = ["LIST_BASE", "LIST_INDEX", "VECTOR_BASE", "VECTOR_INDEX", "Ring", "ring_registers",
           "rings_of"]

LIST_BASE, VECTOR_BASE = 0x2_5000_0000, 0x2_6000_0000
"""Addresses of the rings of request lists and of vectors in GPU memory."""

LIST_INDEX, VECTOR_INDEX = 0x2_4000_2000, 0x2_4000_2040
"""Addresses of two counts in GPU memory: lists written, and vector slots read. Their upper halves
equal those of the rings."""

_SLOTS, _EVERY = 256, 16
"""Slots of a ring; consecutive vector slots that are read before their count is written."""


@dataclass(frozen=True)
class Ring:
    """A ring in GPU memory, with slots numbered from 0, modulo ``slots``.

    Members
    -------
    base: address of the ring.
    slots: number of slots, a power of two.
    slot_bytes: bytes of a slot, a power of two.
    index: address of the NIC's count.
    """

    base: int
    slots: int
    slot_bytes: int
    index: int

    def address(self, number: int) -> int:
        """Return the address of the slot of ``number``."""
        return self.base + self.slot_bytes * (number % self.slots)


def rings_of(config: NicConfig) -> tuple[Ring, Ring]:
    """Return the rings of request lists and of vectors of a NIC.

    A slot takes the largest request list with its header, or the largest payload of vectors.
    """
    sizes = (BEAT_BYTES << ceil_log2(beats) for beats in (
        config.net_payload_beats + 1, config.host_payload_beats))
    places = ((LIST_BASE, LIST_INDEX), (VECTOR_BASE, VECTOR_INDEX))
    lists, vectors = (Ring(base, _SLOTS, size, index)
                      for size, (base, index) in zip(sizes, places))
    return lists, vectors


def ring_registers(config: NicConfig) -> dict[str, int]:
    """Return the register values of a NIC with rings."""
    values = {"gpu_rings": 1, "vector_every": _EVERY}
    for name, ring in zip(("list", "vector"), rings_of(config)):
        values |= {
            f"{name}_ring_low": ring.base & 0xFFFF_FFFF, f"{name}_ring_high": ring.base >> 32,
            f"{name}_ring_shift": ceil_log2(ring.slots),
            f"{name}_slot_shift": ceil_log2(ring.slot_bytes),
            f"{name}_index_low": ring.index & 0xFFFF_FFFF}
    return values
