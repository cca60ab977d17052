"""FloatAccumulator: each term is added once, in the order of the observed additions."""

from collections import Counter, defaultdict

import numpy as np
import pytest

from rtl.float import FloatAccumulator
from tests.rtl.float.exact_cases import PATTERNS, Script, random_script
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate

ENTRIES = 7
SMALL = ["gaussian", "any_finite", "cancelling", "edges", "zeros", "any", "huge", "infinite"]
NAN = 0x7FC00000


def added(a: int, b: int) -> int:
    """Return the float32 sum of two binary32, NaN as 0x7FC00000."""
    with np.errstate(all="ignore"):
        total = np.uint32(a).view(np.float32) + np.uint32(b).view(np.float32)
    return NAN if np.isnan(total) else int(np.float32(total).view(np.uint32))


class Board:
    """Scoreboard: the values that each entry has at any moment, as bits by lane.

    Members: ``additions``, their number; ``sums``: those that must leave, by entry.
    """

    def __init__(self, lanes: int):
        self._lanes, self.additions = lanes, 0
        self._values: dict[tuple[int, int], Counter] = defaultdict(Counter)
        self.sums: dict[int, list[list[int]]] = defaultdict(list)

    def _words(self, bits: int) -> list[int]:
        return [bits >> 32 * lane & 0xFFFFFFFF for lane in range(self._lanes)]

    def arrive(self, entry: int, bits: int) -> None:
        for lane, word in enumerate(self._words(bits)):
            self._values[entry, lane][word] += 1

    def begin(self, take: bool, entry: int, a: int, b: int) -> None:
        """An addition begins: both operands are values of the entry, which its sum replaces."""
        final = []
        for lane, pair in enumerate(zip(self._words(a), self._words(b))):
            held = self._values[entry, lane]
            single = take and held.total() == 1
            assert not single or pair[1] == 1 << 31
            for word in pair[:1] if single else pair:
                assert held[word] > 0, f"{word:#x} is no value of entry {entry}"
                held[word] -= 1
            if take:
                assert held.total() == 0, f"values of entry {entry} are left"
            else:
                held[added(*pair)] += 1
            final.append(added(*pair))
        if take:
            self.sums[entry].append(final)
        else:
            self.additions += 1


def check(script: Script, *, stall: float = 0.0, offer_stall: float = 0.0,
          seed: int = 0) -> tuple[Board, int]:
    """Compare each sum with its additions; return the scoreboard and the number of cycles."""
    lanes = script.data.shape[1]
    dut, taken, board = made(FloatAccumulator, ENTRIES, 16, lanes=lanes), [], Board(lanes)

    async def watch(ctx):
        operation, begin = dut.i.payload, dut.operands
        async for *_, valid, ready, take, entry, bits, begun, final, where, a, b in (
                ctx.tick().sample(
                    dut.i.valid, dut.i.ready, operation.take, operation.entry, operation.data,
                    begin.valid, begin.take, begin.entry, begin.a, begin.b)):
            if begun:
                board.begin(bool(final), where, a, b)
            if valid and ready and not take:
                board.arrive(entry, bits)

    async def rest(ctx):
        await receiver(dut.o, taken, len(script.taken), stall=stall, seed=seed)(ctx)
        await ctx.tick().repeat(4)
        assert ctx.get(dut.idle)

    # With ``take``, ``first`` has no effect.
    items = [item | {"first": item["first"] | n % 2 * item["take"]}
             for n, item in enumerate(script.items())]
    cycles = simulate(powered_up(dut, seed), sender(
        dut.i, items, stall=offer_stall, seed=seed), rest, background=[watch], limit=9000)
    order = [(item["entry"], item["meta"]) for item in items if item["take"]]
    assert [item["meta"] for item in taken] == [meta for _, meta in order]
    assert all(item["count"] == item["last"] == 1 for item in taken)
    sums = {entry: iter(found) for entry, found in board.sums.items()}
    for item, (entry, _) in zip(taken, order, strict=True):
        assert board._words(item["data"]) == next(sums[entry])
    return board, cycles


@pytest.mark.few(4)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_each_term_is_added_once(pattern):
    script = random_script(250, ENTRIES, pattern, SMALL, 1, len(pattern), take=0.04)
    board, _ = check(script, seed=3)
    # The last two values of an entry may meet when they are taken.
    assert board.additions > 150 - len(script.taken)


@pytest.mark.few(2)
@pytest.mark.parametrize("pattern", ["same", "uniform", "every_third", "few"])
def test_stalls(pattern):
    check(random_script(120, ENTRIES, pattern, SMALL, 1, 5), stall=0.4, offer_stall=0.4, seed=5)


def test_sums_of_few_terms():
    check(random_script(80, ENTRIES, "uniform", SMALL, 1, 9, take=0.5))


def test_lanes_do_not_touch_each_other():
    check(random_script(60, ENTRIES, "few", ["infinite", "any", "gaussian"], 3, 1))


@pytest.mark.few(2)
@pytest.mark.parametrize("pattern", ["same", "power_law", "uniform", "few"])
def test_whole_numbers_add_up(pattern):
    """Nothing is rounded, so the order has no effect."""
    rng = np.random.default_rng(len(pattern))
    count = 200
    entry = PATTERNS[pattern](count, ENTRIES, rng)
    data = rng.integers(-999, 1000, (count, 1)).astype(np.float32)
    items = [{"entry": where, "data": int(bits), "meta": 0, "take": 0,
              "first": int(where not in entry[:n])}
             for n, (where, bits) in enumerate(zip(entry.tolist(), data.view(np.uint32)[:, 0]))]
    used = sorted(set(entry.tolist()))
    items += [{"entry": where, "data": 0, "meta": where, "take": 1, "first": 0} for where in used]
    dut, taken = made(FloatAccumulator, ENTRIES, 16, lanes=1), []
    simulate(powered_up(dut), sender(dut.i, items), receiver(dut.o, taken, len(used)), limit=999)
    sums = np.array([item["data"] for item in taken], np.uint32).view(np.float32)
    assert [item["meta"] for item in taken] == used
    assert sums.tolist() == [float(data[entry == where].sum()) for where in used]


def test_latency():
    dut = made(FloatAccumulator, ENTRIES, 16, lanes=1)
    term = {"entry": 1, "data": 0x3F800000, "meta": 7, "first": 1, "take": 0}
    first, second, taking = term, term | {"first": 0}, term | {"take": 1}
    latencies = []

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        for terms in ([], [first], [first, second]):
            while not ctx.get(dut.idle):
                await ctx.tick()
            await sender(dut.i, terms)(ctx)
            ctx.set(dut.i.payload, taking)
            ctx.set(dut.i.valid, 1)
            waited = 0
            while not ctx.get(dut.o.valid):
                ready = ctx.get(dut.i.ready)
                await ctx.tick()
                if ready:
                    ctx.set(dut.i.valid, 0)
                waited += 1
            latencies.append(waited)
            await ctx.tick()

    simulate(dut, bench)
    assert latencies == list(FloatAccumulator.LATENCY.values())


@pytest.mark.parametrize("arguments, said", [
    ({"entries": 1}, "entries must be an integer of at least 2, not 1"),
    ({"entries": True}, "entries must be an integer of at least 2, not True"),
    ({"entries": 8, "lanes": 17}, "lanes must be an integer between 1 and 16, not 17")])
def test_arguments(arguments, said):
    with pytest.raises(ValueError, match=f"^{said}$"):
        FloatAccumulator(meta_shape=1, **arguments)
