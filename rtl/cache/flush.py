"""Flush: empties a cache in mid-traffic."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CacheFlush"]


class CacheFlush(wiring.Component):
    """Let a cache drain, and clear it, when ``flush`` rises.

    From the cycle after ``flush`` has risen on, lookups wait. The cache is cleared once each lookup
    inside has its vector; then lookups go on. So a lookup gets its vector from before or from
    after: one that is taken after ``flushing`` has fallen is fetched again.

    Parameters: ``in_flight``, fetches that may be outstanding.

    Ports
    -----
    flush: a rise of it begins; one while ``flushing`` empties the cache once more.
    flushing: a flush is in progress, and no lookup may be given to the cache.
    asked, landed: a fetch leaves the cache; a vector has landed.
    idle: of the cache. forget: the cache is to be cleared (:class:`rtl.cache.EmbeddingCache`).
    """

    def __init__(self, in_flight: int):
        self._in_flight = in_flight
        super().__init__({
            "flush": In(1), "flushing": Out(1), "asked": In(1), "landed": In(1), "idle": In(1),
            "forget": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        before, rises, over = Signal(), Signal(), Signal()
        owed, drained = Signal(range(self._in_flight + 1)), Signal()
        swept, cleared = Signal(), Signal()
        m.d.comb += [
            rises.eq(self.flush & ~before),
            self.forget.eq(self.flushing & ~swept & drained & (owed == 0)),
            over.eq(swept & cleared & ~rises),
        ]
        # A cycle late: a lookup that entered in the cycle before ``flushing`` has been seen.
        m.d.sync += [
            before.eq(self.flush), owed.eq(owed + self.asked - self.landed),
            drained.eq(self.flushing & self.idle), cleared.eq(swept & self.idle),
            self.flushing.eq(rises | (self.flushing & ~over)),
            swept.eq(((self.forget | swept) & ~rises) & ~over),
        ]
        return m
