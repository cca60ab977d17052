"""What the network blocks hand to each other and to their neighbours."""

from amaranth.lib import data

from rtl.config import BEAT_BITS
from rtl.formats import CREDIT_BITS, LANDING_BITS, NODE_BITS, STEP_BITS, Request

__all__ = ["Credit", "Freed", "LookupItem", "RecordBeat", "Refused", "TaggedBeat"]

RecordBeat = data.StructLayout({
    "data": BEAT_BITS, "records": 4, "source": NODE_BITS, "step": STEP_BITS, "last": 1})
"""A payload beat of ``records`` (1 to 8) records, lowest first; ``last`` of its packet."""

TaggedBeat = data.StructLayout({"tag": LANDING_BITS, "data": BEAT_BITS, "last": 1})
"""A beat of a received vector with the vector's tag; ``last`` of the vector."""

Refused = data.StructLayout({"status": 8, "step": STEP_BITS})
"""A host message that was dropped: :class:`rtl.formats.Status`, and the step its header names."""

LookupItem = data.StructLayout({"request": Request, "beat_last": 1})
"""A received lookup; ``beat_last`` on the last one of its payload beat."""

Freed = data.StructLayout({"valid": 1, "node": NODE_BITS})
"""Event: a lookups beat of requester ``node`` was consumed."""

Credit = data.StructLayout({"valid": 1, "node": NODE_BITS, "value": CREDIT_BITS})
"""Event: ``node`` has consumed ``value`` (cumulative, mod 2^16) of our lookups beats."""
