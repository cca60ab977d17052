"""Layout of the indices that tell the host which vector of a step a slot has."""

from amaranth.lib import data

from rtl.formats import EMPTY_INDEX, INDEX_BITS, NO_INDEX, SAMPLE_BITS, STEP_BITS

__all__ = ["EMPTY_INDEX", "INDEX_LIMIT", "NO_INDEX", "SlotIndex"]

INDEX_LIMIT = NO_INDEX
"""Indices of a step: 0 to ``INDEX_LIMIT`` - 1."""

SlotIndex = data.StructLayout({
    "index": INDEX_BITS, "sample": SAMPLE_BITS, "step": STEP_BITS, "last": 1, "bag_end": 1,
    "empty": 1, "ends": 1})
"""The index of a slot's vector among the different vectors of its step. ``last`` of its sample;
``bag_end``: the last of its bag. An ``empty`` slot has :data:`rtl.formats.EMPTY_INDEX`; a key that
was first used after all indices were, :data:`rtl.formats.NO_INDEX`. What ``ends`` is no slot: the
share of its step is over."""
