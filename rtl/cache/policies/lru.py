"""Exact least-recently-used order of the ways of a set, as a matrix of pairs."""

from functools import reduce
from itertools import combinations
from operator import and_

from amaranth.hdl import C, Cat, Module, Signal, Value, ValueLike

from rtl.cache.policies.policy import Policy

__all__ = ["Lru"]


class Lru(Policy):
    """Select the least recently used way: hit or inserted longest ago.

    One bit per pair of ways ``i < j`` is 1 if ``i`` was used after ``j``. Compared with a rank per
    way this costs ``ways * (ways - 1) / 2`` bits instead of ``ways * log2(ways)``. An update is one
    LUT level and the victim two, so a set can be read, decided and written back in one cycle. All
    zero is the order in which way 0 is the oldest and the last way the newest. Only use moves a
    way, so the invalid ways are the oldest, in sequence. A set of one way has no pair; its state is
    a bit that stays 0.
    """

    def __init__(self, ways: int):
        super().__init__(ways)
        self._pairs = {pair: bit for bit, pair in enumerate(combinations(range(ways), 2))}

    @property
    def bits(self) -> int:
        return max(1, len(self._pairs))

    def victim(self, m: Module, state: Value, valid: Value) -> Value:
        def older(i: int, j: int) -> Value:
            return Value.cast(~state[self._pairs[i, j]] if i < j else state[self._pairs[j, i]])

        return Value.cast(Cat(*(
            reduce(and_, (older(i, j) for j in range(self.ways) if j != i), C(1, 1))
            for i in range(self.ways))))

    def on_hit(self, m: Module, state: Value, way: Value) -> Value:
        return self._use(state, way)

    def on_insert(self, m: Module, state: Value, way: Value,
                  distant: ValueLike = 0) -> Value:
        return self._use(state, way)

    def update(self, m: Module, state: Value, hit: Value, inserted: Value,
               distant: ValueLike = 0) -> Value:
        used = Signal(self.ways)
        m.d.comb += used.eq(hit | inserted)
        return self._use(state, used)

    def _use(self, state: Value, used: Value) -> Value:
        """Return the order after a use of the way ``used``."""
        if not self._pairs:
            return state
        return Value.cast(Cat(*(
            used[i] | (state[bit] & ~used[j]) for (i, j), bit in self._pairs.items())))
