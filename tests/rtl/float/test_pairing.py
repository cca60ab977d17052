"""Pairing: a value is stored in an empty place, and is added or taken once."""

import random
from collections import Counter, deque

import numpy as np
import pytest

from rtl.float.pairing import Pairing
from tests.rtl.float.exact_cases import PATTERNS
from tests.rtl.power_up import powered_up
from tests.support import made, simulate

ENTRIES = 12
IN_FLIGHT = 32
LOOP = 9
"""Cycles from a decision to the earliest result."""


class Places:
    """The places and values in flight of all entries, by the decisions so far."""

    def __init__(self):
        self.full: set[tuple[int, int]] = set()
        self.flying: Counter[int] = Counter()

    def read(self, entry: int, place: int) -> None:
        assert (entry, place) in self.full, f"nothing to add in place {place} of {entry}"
        self.full.remove((entry, place))

    def apply(self, decision: dict) -> int | None:
        """Check and carry out a decision; return the entry of an addition."""
        for place in range(2):
            if decision["write"] >> place & 1:
                back = decision["from_result"] >> place & 1
                entry = decision["result" if back else "arrival"]
                assert (entry, place) not in self.full, f"place {place} of {entry} is full"
                self.full.add((entry, place))
                self.flying[entry] -= back
        entry = decision["entry"]
        if decision["take"]:
            assert not self.flying.total()
            for place in range(2):
                if decision["full"] >> place & 1:
                    self.read(entry, place)
            assert not self.full & {(entry, 0), (entry, 1)}
        if not decision["add"]:
            return None
        if decision["both"]:
            assert decision["arrival"] == decision["result"] == entry
        else:
            assert entry == decision["result" if decision["again"] else "arrival"]
            self.read(entry, decision["place"])
        if not decision["both"] and not decision["again"]:
            self.flying[entry] += 1
        return entry


def play(arrivals: list[int], *, gaps: float = 0.0, slow: float = 0.0, seed: int = 0) -> tuple:
    """Send ``arrivals``, then take all entries; return the cycles of the arrivals, those in which
    a result waited, and the most values in flight."""
    dut, places, rng = made(Pairing, ENTRIES), Places(), random.Random(seed)
    flying: deque[tuple[int, int]] = deque()
    counts = {"cycles": 0, "waits": 0, "most": 0}

    async def bench(ctx):
        cycle = left = 0
        seen: set[int] = set()
        todo = deque(arrivals)
        takes = deque(sorted(set(arrivals)))
        while not ctx.get(dut.swept):
            await ctx.tick()
        quiet = 0
        while todo or takes or quiet < 9:
            going = bool(todo) and left <= IN_FLIGHT - 4 and rng.random() >= gaps
            taking = not todo and quiet > 4 and bool(takes)
            entry = todo.popleft() if going else takes.popleft() if taking else rng.randrange(9)
            ctx.set(dut.valid, going or taking)
            ctx.set(dut.entry, entry)
            ctx.set(dut.first, going and entry not in seen)
            ctx.set(dut.take, taking)
            seen |= {entry} if going else set()
            offered = bool(flying) and flying[0][0] <= cycle and rng.random() >= slow
            ctx.set(dut.results.valid, offered)
            ctx.set(dut.results.payload, flying[0][1] if flying else rng.randrange(9))
            counts["waits"] += not ctx.get(dut.results.ready)
            if offered and ctx.get(dut.results.ready):
                flying.popleft()
            if todo:
                left += ctx.get(dut.grows) - ctx.get(dut.shrinks)
            *_, bits = await ctx.tick().sample(dut.o.as_value())
            decision = dut.o.shape().from_bits(bits)
            added = places.apply({name: decision[name] for name in dut.o.shape().members})
            if added is not None:
                flying.append((cycle + LOOP, added))
            cycle += 1
            counts["cycles"] += bool(todo)
            counts["most"] = max(counts["most"], left)
            quiet = 0 if going or taking or flying else quiet + 1

    simulate(powered_up(dut, seed), bench, limit=20_000)
    assert not places.full and not +places.flying
    return counts["cycles"], counts["waits"], counts["most"]


@pytest.mark.few(3)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_one_arrival_a_cycle(pattern):
    arrivals = PATTERNS[pattern](300, ENTRIES, np.random.default_rng(1)).tolist()
    cycles, _, most = play(arrivals, seed=1)
    assert cycles <= 330 and most <= IN_FLIGHT


@pytest.mark.few(2)
@pytest.mark.parametrize("gaps, slow", [(0.4, 0.0), (0.0, 0.4), (0.3, 0.3)])
def test_gaps(gaps, slow):
    arrivals = PATTERNS["uniform"](300, ENTRIES, np.random.default_rng(2)).tolist()
    play(arrivals, gaps=gaps, slow=slow, seed=2)


def test_a_result_waits_where_all_places_are_full():
    """Periods that leave two values in most places, as few orders do."""
    rng = random.Random(945)
    waited = 0
    for _ in range(4):
        period = [rng.randrange(8) for _ in range(22)]
        waited += play(period * 20, seed=3)[1]
    assert waited > 0
