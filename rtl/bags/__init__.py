"""Bags that pool at their owner: their words in packets, from the host to the owner's GPU."""

from rtl.bags.splitter import SegmentSplit

__all__ = ["SegmentSplit"]
