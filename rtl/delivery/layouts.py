"""Layout of the indices that name each slot's vector to the host."""

from amaranth.lib import data

from rtl.formats import EMPTY_INDEX, INDEX_BITS, NO_INDEX, SAMPLE_BITS, STEP_BITS

__all__ = ["EMPTY_INDEX", "INDEX_LIMIT", "NO_INDEX", "SlotIndex"]

INDEX_LIMIT = NO_INDEX
"""Number of indices of a step: 0 to ``INDEX_LIMIT`` - 1."""

SlotIndex = data.StructLayout({
    "index": INDEX_BITS, "sample": SAMPLE_BITS, "step": STEP_BITS, "last": 1, "bag_end": 1,
    "empty": 1, "ends": 1})
"""The index of a slot's vector among the distinct vectors of its step.

last: last slot of its sample. bag_end: last slot of its bag. empty: the slot has
:data:`rtl.formats.EMPTY_INDEX`. A key that appeared first after all indices were used has
:data:`rtl.formats.NO_INDEX`. ends: no slot; the share of its step is over.
"""
