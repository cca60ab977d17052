"""Delivery to the host: each different vector of a step once, and for each slot its index."""

from rtl.delivery.indices import IndexPackager
from rtl.delivery.layouts import EMPTY_INDEX, INDEX_LIMIT, NO_INDEX, SlotIndex
from rtl.delivery.share import DELIVERY_COUNTERS, ShareDelivery
from rtl.delivery.unique import UNIQUE_COUNTERS, UniqueFinder

__all__ = ["DELIVERY_COUNTERS", "EMPTY_INDEX", "INDEX_LIMIT", "NO_INDEX", "UNIQUE_COUNTERS",
           "IndexPackager", "ShareDelivery", "SlotIndex", "UniqueFinder"]
