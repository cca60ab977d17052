"""Layouts of the data that network blocks exchange with each other and with their neighbours."""

from amaranth.lib import data

from rtl.config import BEAT_BITS
from rtl.formats import CREDIT_BITS, NODE_BITS, RecordBeat, Request, TaggedBeat

__all__ = ["AtNode", "CountedBeat", "Credit", "Freed", "FreedBeats", "LookupItem", "PacketBeat",
           "received_header", "received_vector"]


LookupItem = data.StructLayout({"request": Request, "beat_last": 1})
"""A received lookup; ``beat_last`` marks the last lookup of its payload beat."""

AtNode = data.StructLayout({"valid": 1, "node": NODE_BITS})
"""Event at ``node``."""

Freed = AtNode
"""Event: one beat of lookups or partials from ``node`` was consumed."""

FreedBeats = data.StructLayout({"valid": 1, "node": NODE_BITS, "beats": 8})
"""Event: several beats from ``node`` were consumed."""

Credit = data.StructLayout({"valid": 1, "node": NODE_BITS, "value": CREDIT_BITS})
"""Event: ``node`` has consumed ``value`` beats of this node's packets (cumulative, mod 2^16)."""

PacketBeat = data.StructLayout({"item": BEAT_BITS, "last": 1})
"""A beat of a complete and valid packet, header beat first."""

CountedBeat = data.StructLayout({"beat": RecordBeat, "count": 16})
"""A beat of a packet of records followed by values. ``records`` is 0 in beats of values. ``count``
is the number of records from this beat on; at the first beat, of the whole packet."""


def received_header(bags: bool = False) -> data.StructLayout:
    """Layout of the event that a valid packet from ``source`` arrived. Its header acknowledges
    ``credit`` beats: of partials if ``gradient`` (a packet of training), of bags if ``bag`` (BAGS
    or BAG_VECTORS; with ``bags``), else of lookups."""
    return data.StructLayout({
        "valid": 1, "source": NODE_BITS, "credit": CREDIT_BITS, "gradient": 1,
        **({"bag": 1} if bags else {})})


def received_vector(origin: int) -> data.StructLayout:
    """Layout of a beat of a received vector with an ``origin`` of that many bits. For vectors from
    peers, the low bits of ``origin`` are the sending node; for vectors from the host, its lowest
    bit marks a sample's dense vector. With owner pooling, the highest bit marks a bag's vector."""
    return data.StructLayout({"beat": TaggedBeat, "origin": origin})
