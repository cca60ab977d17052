"""What the blocks that receive partials hand to each other and to their neighbours."""

from amaranth.lib import data

from rtl.formats import NODE_BITS, RECORD_BITS, STEP_BITS, GradientBeat

__all__ = ["PartialArrived", "PartialItem", "PartialLost", "ReceivedPartial"]

PartialItem = data.StructLayout({
    "record": RECORD_BITS, "source": NODE_BITS, "step": STEP_BITS, "beats": 8, "last": 1})
"""A record of a packet of ``beats`` payload beats; ``last`` of its packet."""

ReceivedPartial = data.StructLayout({"beat": GradientBeat, "source": NODE_BITS, "level": 1})
"""A partial, who sent it, and for which :class:`rtl.formats.ReductionLevel`."""

PartialArrived = data.StructLayout({"valid": 1, "source": NODE_BITS, "step": STEP_BITS})
"""Event: a partial of ``step`` from ``source`` was handed on, or was dropped as bad."""

PartialLost = data.StructLayout({"valid": 1, "level": 1, "step": STEP_BITS})
"""Event: what the host returned to the reduction ``level`` in ``step`` was dropped as bad."""
