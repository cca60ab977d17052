"""Query path: from the host's samples to lookups, and what the host is told about them."""

from .checker import QUERY_COUNTERS, QueryChecker, Slot
from .dispatcher import DISPATCHER_COUNTERS, Dispatcher
from .reporter import REPORTER_COUNTERS, CreditReport, HostReporter
from .unpacker import QueryItem, QueryUnpacker

__all__ = [
    "DISPATCHER_COUNTERS", "QUERY_COUNTERS", "REPORTER_COUNTERS", "CreditReport", "Dispatcher",
    "HostReporter", "QueryChecker", "QueryItem", "QueryUnpacker", "Slot",
]
