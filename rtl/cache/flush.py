"""Flush: empties a cache during traffic."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CacheFlush"]


class CacheFlush(wiring.Component):
    """Let a cache drain, then clear it.

    Lookups wait from the cycle after ``flush`` on. The cache is cleared once each lookup inside has
    its vector; then lookups continue. A lookup that the cache accepts after ``flushing`` has fallen
    is fetched again.

    Parameters: ``in_flight``, fetches that may be outstanding.

    Ports
    -----
    flush: event: clear the cache. A second event while ``flushing`` has no effect, because no
        lookup has entered since the first.
    flushing: a flush is in progress; the cache must get no lookup.
    asked, landed: events: a fetch leaves the cache; a fetched vector has arrived.
    idle, forget: port ``idle`` of the cache; its input ``forget``
        (:class:`rtl.cache.EmbeddingCache`).
    """

    def __init__(self, in_flight: int):
        self._in_flight = in_flight
        super().__init__({
            "flush": In(1), "flushing": Out(1), "asked": In(1), "landed": In(1), "idle": In(1),
            "forget": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        owed, drained = Signal(range(self._in_flight + 1)), Signal()
        swept, cleared = Signal(), Signal()
        over = swept & cleared & ~self.flush
        m.d.comb += self.forget.eq(self.flushing & ~swept & drained & (owed == 0))
        # One cycle late, to include a lookup that entered in the cycle before ``flushing``.
        m.d.sync += [
            owed.eq(owed + self.asked - self.landed),
            drained.eq(self.flushing & self.idle), cleared.eq(swept & self.idle),
            self.flushing.eq(self.flush | (self.flushing & ~over)),
            swept.eq((self.forget & ~self.flush) | (swept & ~over)),
        ]
        return m
