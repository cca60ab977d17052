"""What the network blocks hand to each other and to their neighbours."""

from amaranth.lib import data

from rtl.formats import CREDIT_BITS, NODE_BITS, Request, TaggedBeat

__all__ = ["Credit", "Freed", "LookupItem", "ReceivedVector"]


LookupItem = data.StructLayout({"request": Request, "beat_last": 1})
"""A received lookup; ``beat_last`` on the last one of its payload beat."""

Freed = data.StructLayout({"valid": 1, "node": NODE_BITS})
"""Event: a lookups beat of requester ``node`` was consumed."""

Credit = data.StructLayout({"valid": 1, "node": NODE_BITS, "value": CREDIT_BITS})
"""Event: ``node`` has consumed ``value`` (cumulative, mod 2^16) of our lookups beats."""

ReceivedVector = data.StructLayout({"beat": TaggedBeat, "dense": 1})
"""A beat of a received vector, and whether the vector is a sample's dense one."""
