"""Layouts of the data that the blocks of the interaction path exchange."""

from amaranth.lib import data

from rtl.config import BEAT_BITS
from rtl.formats import STEP_BITS, BagHead, repeat_fields

__all__ = ["PooledBeat", "ResultBeat", "SlotBeat", "VectorInBeat", "pooled_beat", "slot_beat"]


def slot_beat(bags: bool, positions: int = 0) -> data.StructLayout:
    """Layout of a beat of a slot's vector.

    ``beat_last`` ends the vector; ``sample_last`` marks every beat of the slot that ends the
    sample; ``lost`` marks every beat of zeros that replaces a vector of a failed owner, but no
    beat behind a short vector. With ``bags``, every beat has the ``keys`` and ``mean`` of its
    :func:`~rtl.formats.hold_slot`, and with ``positions`` its :func:`~rtl.formats.repeat_fields`.
    """
    return data.StructLayout({
        "data": BEAT_BITS, "kind": 2, "sample": 32, "step": STEP_BITS, "beat_last": 1,
        "sample_last": 1, "lost": 1,
    } | ({"keys": BagHead["keys"].width, "mean": 1} if bags else {}) | repeat_fields(positions))


SlotBeat = slot_beat(False)
"""A beat of the vector of a key, in NICs without owner-pooled bags."""

PooledBeat = data.StructLayout({
    "data": BEAT_BITS, "beat_last": 1, "bag_last_of_sample": 1, "sample": 32, "step": STEP_BITS,
    "lost": 1,
})
"""A beat of a bag's pooled vector. ``beat_last`` ends the vector; ``bag_last_of_sample`` marks
every beat of the bag that ends the sample; ``lost`` marks every beat of a bag with a lost vector.
"""


def pooled_beat(positions: int) -> data.StructLayout:
    """Layout of a :data:`PooledBeat` with the :func:`~rtl.formats.repeat_fields` of its bag."""
    return data.StructLayout(PooledBeat.members | repeat_fields(positions))


VectorInBeat = data.StructLayout({
    "data": BEAT_BITS, "vector_last": 1, "sample_last": 1, "sample": 32, "step": STEP_BITS,
    "lost": 1,
})
"""A beat of the vectors of a sample, the dense vector first, then the pooled vectors.
``vector_last`` ends a vector; ``sample_last`` marks every beat of the sample's last vector;
``lost`` marks every beat of a lost bag. The vectors of a sample have the same number of beats."""

ResultBeat = data.StructLayout(
    {"data": BEAT_BITS, "last": 1, "sample": 32, "step": STEP_BITS, "lost": 1})
"""A beat of a sample's interaction result, the dense vector's beats first. ``last`` ends the
result, whose values are packed 16 per beat, with zeros after the last; ``lost``, valid with
``last``: a bag of the sample was lost."""
