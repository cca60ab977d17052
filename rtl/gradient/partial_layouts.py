"""Layouts of the data that the receivers of partials exchange with each other and neighbours."""

from amaranth.lib import data

from rtl.formats import NODE_BITS, RECORD_BITS, STEP_BITS, GradientBeat

__all__ = ["PartialArrived", "PartialItem", "PartialLost", "ReceivedPartial"]

PartialItem = data.StructLayout({
    "record": RECORD_BITS, "source": NODE_BITS, "step": STEP_BITS, "beats": 8, "last": 1})
"""A record of a packet of ``beats`` payload beats; ``last`` marks the last record of its packet."""

ReceivedPartial = data.StructLayout({"beat": GradientBeat, "source": NODE_BITS, "level": 1})
"""A partial, its sender, and its :class:`rtl.formats.ReductionLevel`."""

PartialArrived = data.StructLayout({"valid": 1, "source": NODE_BITS, "step": STEP_BITS})
"""Event: a partial of ``step`` from ``source`` was passed on, or dropped as invalid."""

PartialLost = data.StructLayout({"valid": 1, "level": 1, "step": STEP_BITS})
"""Event: a beat that the host returned for ``level`` in ``step`` was dropped as invalid."""
