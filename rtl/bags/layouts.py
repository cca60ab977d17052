"""Layouts of bags that pool at their owner.

A bag is a head (:data:`rtl.formats.BagHead`) and the words of 64 bits behind it, all in one packet.
A segment is the words of a bag in one beat.
"""

from amaranth.hdl import Mux, Shape, ShapeLike, Value, ValueLike
from amaranth.lib import data
from amaranth.utils import bits_for

from rtl.config import BEAT_BITS
from rtl.formats import (
    BEAT_INDEX_BITS,
    LANDING_BITS,
    NODE_BITS,
    RECORD_BITS,
    RECORDS_PER_BEAT,
    STEP_BITS,
    BagHead,
    RecordBeat,
)

__all__ = ["GRADIENT_WORDS", "ArrivedBag", "AskedBag", "BagBeat", "BagStart", "OutgoingSegment",
           "OwnedSegment", "Segment", "gradient_bag_words", "split_beat", "split_item"]

BagBeat = data.StructLayout(RecordBeat.members | {"fresh": 1})
"""A received beat of bags. ``fresh``: it does not continue the bag of the previous beat."""

Segment = data.StructLayout({
    "words": BEAT_BITS, "first": range(RECORDS_PER_BEAT), "size": range(RECORDS_PER_BEAT + 1),
    "head": 1, "tail": 1, "keys": BagHead["keys"].width})
"""A segment: ``size`` words from word ``first`` of a beat on. ``head``: the first of these words is
the head of the bag. ``tail``: the bag ends. ``keys``: keys of the bag whose rows are not in earlier
segments."""

OwnedSegment = data.StructLayout({
    "segment": Segment, "node": NODE_BITS, "step": STEP_BITS, "final_beat": BEAT_INDEX_BITS})
"""A segment at its owner, of a bag of ``node``. The landing of its head is the tag of the answer.
``final_beat``: number of the last beat of the bag's vector, from 0.
"""

OutgoingSegment = data.StructLayout(
    {"segment": Segment, "destination": NODE_BITS, "step": STEP_BITS, "words": 12,
     "final_beat": BEAT_INDEX_BITS})
"""A segment on the way to a packet. The landing in its head is final. ``words``: words of the whole
bag, with its head. ``final_beat``, at its requester: see :data:`OwnedSegment`."""

BagStart = data.StructLayout(
    {"destination": NODE_BITS, "step": STEP_BITS, "landing": LANDING_BITS, "own": 1,
     "final_beat": BEAT_INDEX_BITS})
"""A bag whose vector has a reserved place, ``landing``, of the hold buffer. ``destination``: its
owner; ``own``: this node is the owner; ``final_beat``: see :data:`OwnedSegment`."""

ArrivedBag = data.StructLayout({"source": NODE_BITS, "step": STEP_BITS})
"""A bag of gradients of ``step`` from ``source``, which will leave for the GPU."""

GRADIENT_WORDS = 8
"""Bits of the number of words of a gradient, two lanes each."""

AskedBag = data.StructLayout({
    "valid": 1, "node": NODE_BITS, "place": LANDING_BITS, "final_beat": BEAT_INDEX_BITS})
"""Event: the vector of a bag is requested from ``node``, for ``place`` of the hold buffer.
``final_beat``: number of the vector's last beat, from 0."""


def gradient_bag_words(head: data.View, gradient_words: ValueLike) -> Value:
    """Return the words of a bag of gradients with its ``head``, a :data:`GradientHead`."""
    pairs = head.keys[1:] + head.keys[0]
    return 1 + Mux(head.wide, head.keys, pairs) + gradient_words


def split_beat(user: ShapeLike) -> data.StructLayout:
    """Layout of a beat of 1 to 8 words, ``records``, with ``user`` data.

    last: the packet ends. fresh: words between the previous beat and this beat are missing.
    """
    return data.StructLayout({
        "data": BEAT_BITS, "records": bits_for(RECORDS_PER_BEAT), "last": 1, "fresh": 1,
        **_beside(user)})


def split_item(user: ShapeLike) -> data.StructLayout:
    """Layout of a segment or a single record, with the ``user`` data of its beat.

    segment: the segment; for a record, its only word. record: the record, or the head of the bag.
    plain: the item is a record. cut: the packet ends before the bag. long: the bag is longer than
    allowed. beat_last: last item of its beat.
    """
    return data.StructLayout({
        "segment": Segment, "record": RECORD_BITS, "plain": 1, "cut": 1, "long": 1,
        "beat_last": 1, **_beside(user)})


def _beside(user: ShapeLike) -> dict[str, ShapeLike]:
    return {"user": user} if Shape.cast(user).width else {}
