"""Access tap: a log of a cache's decisions."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.cache.cache import tap_layout
from rtl.formats import Key
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import StreamFIFO

__all__ = ["ACCESS_TAP_COUNTERS", "Access", "AccessEvent", "AccessTap"]

Access = data.StructLayout({"key": Key, "hit": 1, "pending": 1, "conflict": 1, "unmerged": 1})
"""A lookup of a cache: whether its key was there (``pending``: being fetched), and, for a miss,
whether it found no place (``conflict``) or its key was in flight and merging is off (``unmerged``).
"""

AccessEvent = tap_layout(Key)

ACCESS_TAP_COUNTERS = CounterLayout("events", "lost")


class AccessTap(wiring.Component):
    """Turn the events of one of two caches into a stream that never stalls the cache.

    Latency and rate: see ``LATENCY`` and ``RATE``. An event that finds the FIFO full, because the
    listener is slow, is lost and counted.

    Ports: ``events``, the caches'; ``select``, 1 or 2, whose, and 0 for no one's; ``o``, stream of
    :data:`Access`; ``counters``; ``idle``.
    """

    LATENCY = {("event", "access"): 3}
    RATE = "1 access per cycle"

    def __init__(self, depth: int = 16):
        self._depth = depth
        super().__init__({
            "events": In(AccessEvent).array(2), "select": In(2),
            "o": Out(stream.Signature(Access)),
            "counters": Out(ACCESS_TAP_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.fifo = fifo = StreamFIFO(Access, self._depth)
        wiring.connect(m, fifo.o, wiring.flipped(self.o))
        # The events are at the end of the caches' critical paths, so they are registered before one
        # is chosen.
        events = [Signal(AccessEvent, reset_less=True, name=f"event{k}") for k in (1, 2)]
        select, event = Signal(2), Signal(AccessEvent)
        m.d.sync += [select.eq(self.select),
                     *(kept.eq(given) for kept, given in zip(events, self.events))]
        m.d.comb += [
            event.eq(Mux(select == 2, *reversed(events))),
            fifo.i.valid.eq(event.valid & (select != 0)),
            *(fifo.i.payload[name].eq(event[name]) for name in Access.members),
            self.idle.eq(fifo.idle & ~fifo.i.valid),
        ]
        count(m, self.counters, events=fifo.i.valid & fifo.i.ready,
              lost=fifo.i.valid & ~fifo.i.ready)
        return m
