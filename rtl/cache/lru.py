"""Exact least-recently-used order of the ways of a set, as a matrix of pairs.

One bit per pair of ways ``i < j`` says whether ``i`` was used after ``j``. Compared with a rank per
way this costs ``ways * (ways - 1) / 2`` bits instead of ``ways * log2(ways)``, but a touch is one
LUT level and the oldest way two, so a set can be read, decided and written back in one cycle.
"""

from functools import reduce
from itertools import combinations
from operator import and_

from amaranth.hdl import C, Cat, Value

__all__ = ["oldest", "order_bits", "touch"]


def order_bits(ways: int) -> int:
    """Return the bits of the order of ``ways`` ways; 1 for a single way, which needs none.

    All zero is a valid order: way 0 is the oldest, the last way the newest.
    """
    return max(1, ways * (ways - 1) // 2)


def _pairs(ways: int) -> dict[tuple[int, int], int]:
    return {pair: bit for bit, pair in enumerate(combinations(range(ways), 2))}


def oldest(order: Value, ways: int) -> Value:
    """Return, one-hot, the least recently used way."""
    pairs = _pairs(ways)

    def older(i: int, j: int) -> Value:
        return Value.cast(~order[pairs[i, j]] if i < j else order[pairs[j, i]])

    return Value.cast(Cat(*(
        reduce(and_, (older(i, j) for j in range(ways) if j != i), C(1, 1))
        for i in range(ways))))


def touch(order: Value, used: Value, ways: int) -> Value:
    """Return the order after a use of the ways in ``used`` (one-hot; zero leaves it unchanged)."""
    if ways == 1:
        return order
    return Value.cast(Cat(*(
        used[i] | (order[bit] & ~used[j]) for (i, j), bit in _pairs(ways).items())))
