"""Layouts of the data that the blocks of the reliable link exchange."""

from amaranth.lib import data

from rtl.config import BEAT_BITS
from rtl.formats import NODE_BITS, SEQUENCE_BITS, STEP_BITS, EmberHeader, FrameInfo

__all__ = ["ARRIVALS", "WINDOW", "Acknowledged", "Arrivals", "Failed", "LinkedFrame",
           "PacketNumber"]

WINDOW = 2048
"""Packets to a peer that may be in flight."""

ARRIVALS = BEAT_BITS
"""Packets that one LINK packet acknowledges."""

LinkedFrame = data.StructLayout(FrameInfo.members | {
    "sequence": SEQUENCE_BITS, "acknowledge": SEQUENCE_BITS,
    "change": EmberHeader["epoch"].width})
"""A packet's header fields from the sender of the link to the frame assembler. The packet's epoch
is register ``link_epoch`` XOR ``change``."""

Acknowledged = data.StructLayout(
    {"valid": 1, "node": NODE_BITS, "acknowledge": SEQUENCE_BITS})
"""Event: a valid packet from ``node`` arrived. Its header acknowledges all packets to ``node``
before ``acknowledge``."""

Arrivals = data.StructLayout(
    {"node": NODE_BITS, "first": SEQUENCE_BITS, "bits": BEAT_BITS})
"""Bit k: packet ``first`` + k has arrived. Received in a LINK packet, it is about packets to
``node``; to be sent, about packets from ``node``. ``first`` is a multiple of :data:`ARRIVALS`."""

PacketNumber = data.StructLayout({"source": NODE_BITS, "sequence": SEQUENCE_BITS})
"""Sender and sequence number of a received packet."""

Failed = data.StructLayout({"valid": 1, "node": NODE_BITS, "step": STEP_BITS})
"""Event: ``node`` has not acknowledged a packet of ``step`` after the last try."""
