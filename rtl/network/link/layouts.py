"""Layouts of the data that the blocks of the reliable link exchange."""

from amaranth.lib import data

from rtl.config import BEAT_BITS
from rtl.formats import NODE_BITS, SEQUENCE_BITS, STEP_BITS, EmberHeader, FrameInfo

__all__ = ["ARRIVALS", "WINDOW", "Acknowledged", "Arrivals", "Failed", "LinkedFrame",
           "PacketNumber"]

WINDOW = 2048
"""Packets to a peer that may be on their way at once."""

ARRIVALS = BEAT_BITS
"""Packets of which one LINK packet tells whether they have come."""

LinkedFrame = data.StructLayout(FrameInfo.members | {
    "sequence": SEQUENCE_BITS, "acknowledge": SEQUENCE_BITS,
    "change": EmberHeader["epoch"].width})
"""A packet's header fields from the link's sender to the frame assembler. The packet's epoch is
that of register ``link_epoch`` exclusive-or ``change``."""

Acknowledged = data.StructLayout(
    {"valid": 1, "node": NODE_BITS, "acknowledge": SEQUENCE_BITS})
"""Event: a good packet of ``node`` has come, whose header says that all of our packets to it before
``acknowledge`` have come there."""

Arrivals = data.StructLayout(
    {"node": NODE_BITS, "first": SEQUENCE_BITS, "bits": BEAT_BITS})
"""Bit k: whether packet ``first`` + k has come: of ours at ``node``, or, on the way to a LINK
packet, of ``node``'s here. ``first`` is a multiple of :data:`ARRIVALS`."""

PacketNumber = data.StructLayout({"source": NODE_BITS, "sequence": SEQUENCE_BITS})
"""A received packet's sender, and its number there."""

Failed = data.StructLayout({"valid": 1, "node": NODE_BITS, "step": STEP_BITS})
"""Event: ``node`` has not acknowledged a packet of ``step``, however often it was sent."""
