"""Layouts of packets that are stored until they are acknowledged."""

from amaranth.lib import data

from rtl.formats import NODE_BITS, SEQUENCE_BITS, FrameInfo

__all__ = ["HEADER_FIELDS", "TIME_BITS", "Chain", "Found", "Given", "Kept", "Record", "Repeat"]

TIME_BITS = 24
"""Bits of a timeout in cycles; the largest timeout is below half of their range."""

HEADER_FIELDS = ("opcode", "step", "count", "empty", "final_beat")
"""Header fields of :data:`rtl.formats.FrameInfo` that are stored with a packet."""


def Chain(beats: int) -> data.StructLayout:
    """Linked beats of the pool: the first and the last one."""
    return data.StructLayout({"first": range(beats), "last": range(beats)})


def Given(most: int) -> data.StructLayout:
    """Beats of the pool that a packet to ``node`` takes or returns."""
    return data.StructLayout({"node": NODE_BITS, "beats": range(most + 1)})


def Record(beats: int, most: int) -> data.StructLayout:
    """State of a packet besides its payload, stored by the number of its first beat.

    ``last`` and ``beats`` describe its chain, which has one beat if the packet is ``empty``.
    ``tries`` is the number of transmissions; the last one was at ``time``.
    """
    return data.StructLayout({
        **{name: FrameInfo[name].shape for name in HEADER_FIELDS}, "last": range(beats),
        "beats": range(most + 1), "tries": 8, "time": TIME_BITS})


def Kept(beats: int, most: int) -> data.StructLayout:
    """Event: a packet was sent for the first time, and is in the pool."""
    return data.StructLayout({
        "valid": 1, "node": NODE_BITS, "sequence": SEQUENCE_BITS, "first": range(beats),
        "record": Record(beats, most)})


def Found(beats: int, most: int) -> data.StructLayout:
    """A packet in the pool. ``due``: repeat it if it is overdue; else it is acknowledged.
    ``newest``: the last acknowledged packet of its group."""
    return data.StructLayout({
        "node": NODE_BITS, "sequence": SEQUENCE_BITS, "due": 1, "newest": 1,
        "first": range(beats), "record": Record(beats, most)})


def Repeat(beats: int, most: int) -> data.StructLayout:
    """A packet to send again."""
    return data.StructLayout({
        "node": NODE_BITS, "sequence": SEQUENCE_BITS, "first": range(beats),
        "record": Record(beats, most)})
