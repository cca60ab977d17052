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
"""A lookup of a cache. ``hit``: its key was cached; ``pending``: the hit waits for a fetch. For a
miss, ``conflict``: no place for the key; ``unmerged``: the key was in flight and merging is off."""

AccessEvent = tap_layout(Key)

ACCESS_TAP_COUNTERS = CounterLayout("events", "lost")


class AccessTap(wiring.Component):
    """Convert the events of one of two caches to a stream that never stalls the cache.

    An event is dropped and counted if the FIFO is full because the sink is slow. The order is kept.

    Parameters: ``depth`` of the FIFO.

    Ports
    -----
    events: array of the events of both caches.
    select: the logged cache, 1 or 2; 0 for neither.
    o: stream of :data:`Access`.
    counters: ``events`` logged, and events ``lost``.
    idle: inactive until an input changes.
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
        # The events end the critical paths of the caches, so they are registered before the
        # selection.
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
