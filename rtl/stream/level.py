"""Level: a count of items or places, with registered comparisons."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Level"]


class Level(wiring.Component):
    """Count ``up`` and ``down`` by one per cycle, or both at once.

    ``some`` and ``many`` are registers, so logic behind them does not wait for a comparison of the
    count. One LUT separates them from ``up`` and ``down``.

    Parameters: ``most``, the largest level; ``init``, the level after reset; ``late``: ``up`` and
    ``down`` arrive late in a cycle; both possible next counts are computed before (one more carry
    chain).

    Ports: ``up``; ``down``, not while the level is 0; ``level``; ``some``: the level is at least 1;
    ``many``: it is at least 2.

    Raises ``ValueError`` if ``most`` is below 1, or ``init`` is not a level.
    """

    LATENCY = {("change", "level and flags"): 1}
    RATE = "1 up and 1 down per cycle"

    def __init__(self, most: int, *, init: int = 0, late: bool = False):
        if not isinstance(most, int) or most < 1:
            raise ValueError(f"most must be an integer of at least 1, not {most!r}")
        if not isinstance(init, int) or not 0 <= init <= most:
            raise ValueError(f"init must be an integer between 0 and {most}, not {init!r}")
        self._most, self._init, self._late = most, init, late
        super().__init__({
            "up": In(1), "down": In(1), "level": Out(range(most + 1), init=init),
            "some": Out(1, init=init >= 1), "many": Out(1, init=init >= 2)})

    def elaborate(self, platform) -> Module:
        m = Module()
        up, down = Signal(), Signal()
        m.d.comb += [up.eq(self.up & ~self.down), down.eq(self.down & ~self.up)]
        if self._late:
            following = Mux(up, self.level + 1, Mux(down, self.level - 1, self.level))
        else:  # One carry chain (+1, 0 or -1).
            following = self.level + Cat(up | down, down).as_signed()
        m.d.sync += [
            self.level.eq(following),
            self.some.eq(self.many | up | (self.some & ~down)),
            self.many.eq(self.level[2:].any() | (self.level[:2] == 3)
                         | (self.many & ~down) | (self.some & up)),
        ]
        return m
