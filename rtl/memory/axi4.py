"""AXI4 to high-bandwidth memory: the channels of a master, and the table of masters."""

from typing import NamedTuple

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ADDRESS_BITS", "BURST_BEATS", "HBM_CHANNELS", "ID_BITS", "Address", "MemoryMaster",
           "axi4_master", "read_beat", "write_beat", "write_done"]

HBM_CHANNELS = 32
"""Pseudo-channels of the HBM2 of the U280 (PG276), each with its own AXI port."""
ADDRESS_BITS = 28
"""Bits of an address: a pseudo-channel has 256 MiB, and its addresses start at 0."""
ID_BITS = 6
BURST_BEATS = 8
"""Most beats of a burst: 8 of 512 bits are the 16 AXI3 beats that the memory accepts."""

Address = data.StructLayout({"address": ADDRESS_BITS, "more": range(BURST_BEATS), "id": ID_BITS})
"""A burst: byte address of its first beat, number of further beats, and its ID."""


class MemoryMaster(NamedTuple):
    """An entry of the table of masters, the attribute ``masters`` of a design.

    Members: ``name`` of the port, an :func:`axi4_master`; its exclusive pseudo-``channel``, 0 to
    31; ``width`` of its data in bits.
    """

    name: str
    channel: int
    width: int


def write_beat(width: int) -> data.StructLayout:
    """Return the layout of a written beat of ``width`` bits."""
    return data.StructLayout({"data": width, "strobe": width // 8, "last": 1})


def read_beat(width: int) -> data.StructLayout:
    """Return the layout of a read beat of ``width`` bits; ``resp`` as in AMBA AXI."""
    return data.StructLayout({"data": width, "id": ID_BITS, "resp": 2, "last": 1})


write_done = data.StructLayout({"id": ID_BITS, "resp": 2})
"""Response that a burst has been written."""


def axi4_master(width: int, address=Address) -> wiring.Signature:
    """Return AXI4 from the view of its master, each channel a stream.

    Bursts are incrementing and consist of whole beats; signals for type and size are absent. Beats
    of reads with different IDs may be interleaved (AMBA AXI, A5.3).

    Parameters: ``width`` of the data in bits; ``address``, layout of ``aw`` and ``ar``.

    Members: streams ``aw``, ``w``, ``ar`` out, ``b``, ``r`` in.
    """
    return wiring.Signature({
        "aw": Out(stream.Signature(address)), "w": Out(stream.Signature(write_beat(width))),
        "b": In(stream.Signature(write_done)), "ar": Out(stream.Signature(address)),
        "r": In(stream.Signature(read_beat(width)))})
