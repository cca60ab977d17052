"""Fence: reports when the items that are inside at a given moment have left."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Fence"]


class Fence(wiring.Component):
    """Count the items of a queue, and those of them that were inside at the last ``mark``.

    Parameters: ``most``, the capacity of the queue.

    Ports
    -----
    put, take: an item enters or leaves; counted in the next cycle.
    mark: record the current count.
    passed: no recorded item is inside, from the cycle after ``mark`` on.
    """

    LATENCY = {("take", "passed"): 2}

    def __init__(self, most: int):
        self._most = most
        super().__init__({"put": In(1), "take": In(1), "mark": In(1), "passed": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        inside, left, following = (Signal(range(self._most + 1), name=name)
                                   for name in ("inside", "left", "following"))
        puts, takes = Signal(), Signal()
        m.d.comb += [following.eq(inside + puts - takes), self.passed.eq(left == 0)]
        m.d.sync += [puts.eq(self.put), takes.eq(self.take), inside.eq(following)]
        with m.If(self.mark):
            m.d.sync += left.eq(following)
        with m.Elif(takes & ~self.passed):
            m.d.sync += left.eq(left - 1)
        return m
