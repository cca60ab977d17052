"""Query path: from the host's samples to lookups, with reports to the host."""

from rtl.query.checker import QUERY_COUNTERS, QueryChecker, Slot, slot_layout
from rtl.query.dispatcher import DISPATCHER_COUNTERS, Dispatcher
from rtl.query.repeats import REPEATS_COUNTERS, BagRepeats
from rtl.query.reporter import REPORTER_COUNTERS, CreditReport, HostReporter
from rtl.query.unpacker import QueryItem, QueryUnpacker

__all__ = [
    "DISPATCHER_COUNTERS", "QUERY_COUNTERS", "REPEATS_COUNTERS", "REPORTER_COUNTERS", "BagRepeats",
    "CreditReport", "Dispatcher",
    "HostReporter", "QueryChecker", "QueryItem", "QueryUnpacker", "Slot", "slot_layout",
]
