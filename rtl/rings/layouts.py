"""Layouts of the rings in GPU memory."""

from amaranth.lib import data

from rtl.formats import STEP_BITS

__all__ = ["INDEX_BITS", "AnsweredStep", "FlushedSlot", "RingIndex", "StepError"]

INDEX_BITS = 16
"""Bits of a cumulative count of slots. A ring has at most half as many slots as it counts."""

RingIndex = data.StructLayout({"valid": 1, "index": INDEX_BITS})
"""Event: a count of slots was stored: slots filled or emptied so far, modulo 2^16."""

AnsweredStep = data.StructLayout({"valid": 1, "step": STEP_BITS, "count": 16})
"""Event: a packet that answers ``count`` samples of ``step`` left for the host."""

StepError = data.StructLayout({"valid": 1, "step": STEP_BITS, "status": 8})
"""Event: ``step`` has an error, a :class:`rtl.formats.Status`."""

FlushedSlot = data.StructLayout({"valid": 1, "slot": 16, "tag": 16})
"""Event: the host reports that all writes before FLUSH ``tag`` of ``slot`` are in GPU memory."""
