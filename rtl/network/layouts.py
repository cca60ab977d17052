"""What the network blocks hand to each other and to their neighbours."""

from amaranth.lib import data

from rtl.formats import CREDIT_BITS, NODE_BITS, Request

__all__ = ["Credit", "Freed", "LookupItem"]




LookupItem = data.StructLayout({"request": Request, "beat_last": 1})
"""A received lookup; ``beat_last`` on the last one of its payload beat."""

Freed = data.StructLayout({"valid": 1, "node": NODE_BITS})
"""Event: a lookups beat of requester ``node`` was consumed."""

Credit = data.StructLayout({"valid": 1, "node": NODE_BITS, "value": CREDIT_BITS})
"""Event: ``node`` has consumed ``value`` (cumulative, mod 2^16) of our lookups beats."""
