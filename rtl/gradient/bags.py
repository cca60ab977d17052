"""Layouts between the blocks from the host's gradients to the local reduction."""

from amaranth.hdl import Shape, unsigned
from amaranth.lib import data

from rtl.config import NicConfig
from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT, STEP_BITS, Key

__all__ = ["BagKey", "GradientItem", "bag_length", "packet_records"]

BagKey = data.StructLayout({"key": Key, "step": STEP_BITS, "end": 1, "over": 1})
"""A checked key of a bag; ``end`` marks the last key of its bag. With ``over``, the item has no key
and ends the gradients of the step."""

GradientItem = data.StructLayout({
    "record": RECORD_BITS, "step": STEP_BITS, "bare": 1, "lost": 1, "last": 1, "beats": 8})
"""A record of a packet with ``beats`` beats of vectors; ``last`` marks the last record of its
packet. A packet without records is one ``bare`` item; ``lost`` means that it was sent without
credit."""


def packet_records(config: NicConfig) -> int:
    """Return the most records of a packet from the host."""
    return RECORDS_PER_BEAT * config.host_payload_beats


def bag_length(config: NicConfig) -> Shape:
    """Return the shape of the number of keys of a bag. A bag is never split over packets."""
    return unsigned(packet_records(config).bit_length())
