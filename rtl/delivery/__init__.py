"""Delivery to the host: each distinct vector of a step once, and an index for each slot."""

from rtl.delivery.indices import IndexPackager
from rtl.delivery.layouts import EMPTY_INDEX, INDEX_LIMIT, NO_INDEX, SlotIndex
from rtl.delivery.share import DELIVERY_COUNTERS, ShareDelivery
from rtl.delivery.unique import UNIQUE_COUNTERS, UniqueFinder

__all__ = ["DELIVERY_COUNTERS", "EMPTY_INDEX", "INDEX_LIMIT", "NO_INDEX", "UNIQUE_COUNTERS",
           "IndexPackager", "ShareDelivery", "SlotIndex", "UniqueFinder"]
