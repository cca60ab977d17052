"""Query path: from the host's samples to lookups, and what the host is told about them."""

from .checker import QUERY_COUNTERS, QueryChecker, Slot
from .dispatcher import DISPATCHER_COUNTERS, Dispatcher, HoldSlot, RemoteLookup
from .reporter import REPORTER_COUNTERS, CreditReport, HostReporter, Refusal
from .unpacker import QueryBeat, QueryItem, QueryUnpacker

__all__ = [
    "DISPATCHER_COUNTERS", "QUERY_COUNTERS", "REPORTER_COUNTERS", "CreditReport", "Dispatcher",
    "HoldSlot", "HostReporter", "QueryBeat", "QueryChecker", "QueryItem", "QueryUnpacker",
    "Refusal", "RemoteLookup", "Slot",
]
