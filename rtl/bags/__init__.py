"""Bags that pool at their owner: their words in packets, from the host to the owner's GPU."""

from rtl.bags.bounds import RowBounds
from rtl.bags.places import OwnerPlaces
from rtl.bags.splitter import SegmentSplit
from rtl.bags.store import SegmentStore
from rtl.bags.unpacker import BagUnpacker

__all__ = ["BagUnpacker", "OwnerPlaces", "RowBounds", "SegmentSplit", "SegmentStore"]
