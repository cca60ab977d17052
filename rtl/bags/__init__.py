"""Bags that pool at their owner: their words in packets, from the host to the owner's GPU."""

from rtl.bags.packager import BagPackager
from rtl.bags.pool import BagPool
from rtl.bags.splitter import SegmentSplit
from rtl.bags.word_store import WordStore

__all__ = ["BagPackager", "BagPool", "SegmentSplit", "WordStore"]
