"""Layouts of the data that the network blocks exchange with each other and their neighbours."""

from amaranth.lib import data

from rtl.config import BEAT_BITS
from rtl.formats import CREDIT_BITS, NODE_BITS, RecordBeat, Request, TaggedBeat

__all__ = ["AtNode", "CountedBeat", "Credit", "Freed", "FreedBeats", "LookupItem", "PacketBeat",
           "ReceivedHeader", "received_vector"]


LookupItem = data.StructLayout({"request": Request, "beat_last": 1})
"""A received lookup; ``beat_last`` on the last one of its payload beat."""

AtNode = data.StructLayout({"valid": 1, "node": NODE_BITS})
"""Event: something of ``node`` has happened."""

Freed = AtNode
"""Event: a beat of ``node``, of its lookups or partials, was consumed."""

FreedBeats = data.StructLayout({"valid": 1, "node": NODE_BITS, "beats": 8})
"""Event: several beats of ``node`` were consumed."""

Credit = data.StructLayout({"valid": 1, "node": NODE_BITS, "value": CREDIT_BITS})
"""Event: ``node`` has consumed ``value`` (cumulative, mod 2^16) of the beats that we sent it."""

PacketBeat = data.StructLayout({"item": BEAT_BITS, "last": 1})
"""A beat of a packet that was received whole and is good, the header beat first."""

ReceivedHeader = data.StructLayout({
    "valid": 1, "source": NODE_BITS, "credit": CREDIT_BITS, "gradient": 1})
"""Event: a good packet of ``source`` has come, whose header says that it has consumed ``credit`` of
the beats that we sent it: of partials where ``gradient``, in a packet of training, else of lookups.
"""

CountedBeat = data.StructLayout({"beat": RecordBeat, "count": 16})
"""A beat of a packet of records followed by values. In beats of values ``records`` is 0; ``count``
is the number of records from this beat on: at the first beat, of the whole packet."""


def received_vector(origin: int) -> data.StructLayout:
    """Layout of a beat of a received vector, and its packet's ``origin``, of so many bits: from
    peers the node that has sent it, from the host whether the vector is a sample's dense vector."""
    return data.StructLayout({"beat": TaggedBeat, "origin": origin})
