"""What the network blocks hand to each other and to their neighbours."""

from amaranth.lib import data

from rtl.formats import CREDIT_BITS, NODE_BITS, RecordBeat, Request, TaggedBeat

__all__ = ["CountedBeat", "Credit", "Freed", "FreedBeats", "LookupItem", "ReceivedVector"]


LookupItem = data.StructLayout({"request": Request, "beat_last": 1})
"""A received lookup; ``beat_last`` on the last one of its payload beat."""

Freed = data.StructLayout({"valid": 1, "node": NODE_BITS})
"""Event: a beat of ``node`` was consumed, of its lookups or of its partials."""

FreedBeats = data.StructLayout({"valid": 1, "node": NODE_BITS, "beats": 8})
"""Event: so many beats of node ``node`` were consumed."""

Credit = data.StructLayout({"valid": 1, "node": NODE_BITS, "value": CREDIT_BITS})
"""Event: ``node`` has consumed ``value`` (cumulative, mod 2^16) of the beats that we sent it."""

CountedBeat = data.StructLayout({"beat": RecordBeat, "count": 16})
"""A beat of a packet of records and then values. In beats of values ``records`` is 0; ``count`` is
the records of the packet from this beat on: at its first beat, all."""

ReceivedVector = data.StructLayout({"beat": TaggedBeat, "dense": 1})
"""A beat of a received vector, and whether the vector is a sample's dense one."""
