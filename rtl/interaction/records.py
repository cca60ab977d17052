"""What passes between the blocks of the interaction path."""

from amaranth.lib import data

from rtl.config import BEAT_BITS
from rtl.formats import STEP_BITS

__all__ = ["PooledBeat", "SlotBeat"]



SlotBeat = data.StructLayout({
    "data": BEAT_BITS, "kind": 2, "sample": 32, "step": STEP_BITS, "beat_last": 1,
    "sample_last": 1,
})
"""A beat of a slot's vector: ``beat_last`` ends the vector, ``sample_last`` marks every beat of
the slot that ends the sample."""

PooledBeat = data.StructLayout({
    "data": BEAT_BITS, "beat_last": 1, "bag_last_of_sample": 1, "sample": 32, "step": STEP_BITS,
})
"""A beat of a bag's pooled vector: ``beat_last`` ends the vector, ``bag_last_of_sample`` marks
every beat of the bag that ends the sample."""
