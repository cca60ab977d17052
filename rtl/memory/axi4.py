"""AXI4 to high-bandwidth memory: the channels of a master, and the table of masters."""

from typing import NamedTuple

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ADDRESS_BITS", "BURST_BEATS", "HBM_CHANNELS", "ID_BITS", "Address", "MemoryMaster",
           "axi4_master", "read_beat", "write_beat", "write_done"]

HBM_CHANNELS = 32
"""Pseudo-channels of the U280's HBM2 (PG276), each with its own AXI port."""
ADDRESS_BITS = 28
"""A pseudo-channel has 256 MiB; a master's addresses start at 0 in its own."""
ID_BITS = 6
BURST_BEATS = 8
"""Most beats of a burst: of 512 bits, they are the 16 beats that the memory's AXI3 accepts."""

Address = data.StructLayout({"address": ADDRESS_BITS, "more": range(BURST_BEATS), "id": ID_BITS})
"""A burst: byte address of its first beat, number of further beats, and its ID."""


class MemoryMaster(NamedTuple):
    """An entry of the table of masters that a design offers as its attribute ``masters``.

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
    """Return AXI4 as seen by its master, each channel a stream.

    Bursts are incrementing and of whole beats, so there are no signals for type and size. Beats of
    reads with different IDs may be interleaved (AMBA AXI, A5.3).

    Parameters: ``width`` of the data in bits; ``address``, layout of ``aw`` and ``ar``.

    Members: streams ``aw``, ``w``, ``ar`` out, ``b``, ``r`` in.
    """
    return wiring.Signature({
        "aw": Out(stream.Signature(address)), "w": Out(stream.Signature(write_beat(width))),
        "b": In(stream.Signature(write_done)), "ar": Out(stream.Signature(address)),
        "r": In(stream.Signature(read_beat(width)))})
