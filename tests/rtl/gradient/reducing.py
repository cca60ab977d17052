"""Drive a GradientReducer pass by pass, with the expected output."""

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from host.dlrm.exact import ExactSum, exact_sums
from rtl.keys.hash_columns import COLUMNS
from tests.rtl.float.exact_cases import beat, beats_of, terms_of_kind
from tests.rtl.power_up import powered_up
from tests.support import counts_of, receiver, sender, simulate

__all__ = ["STEP", "Item", "Pass", "Play", "check", "key_of", "numbered", "offered", "power_law",
           "same_set", "set_of", "shuffled", "vectors_of"]

STEP = 65535
"""Number of the first step; later ones wrap."""

Item = tuple[int, int, int]
"""Beat: the key's number, which one of its vector, and the bits."""


def key_of(number: int) -> dict:
    """Return the key with the test's number ``number``."""
    return {"row": number * 0x9_1357_9BDF & (1 << 36) - 1, "table": number % 26}


def numbered(key: dict) -> int:
    """Return a key as one number."""
    return key["row"] << 12 | key["table"]


def vectors_of(keys, beats: int, lanes: int, kinds, seed: int) -> list[Item]:
    """Return beats of a vector for each of ``keys``; the terms of a key are of one of ``kinds``."""
    rng = np.random.default_rng(seed)
    data = np.zeros((len(keys), beats, lanes), np.uint32)
    for key in sorted(set(keys)):
        mine = [n for n, other in enumerate(keys) if other == key]
        terms = terms_of_kind(rng.choice(kinds), len(mine), beats * lanes, seed + key)
        data[mine] = terms.reshape(len(mine), beats, lanes)
    return [(key, n, beat(words)) for key, vector in zip(keys, data)
            for n, words in enumerate(vector)]


def shuffled(items: Iterable[Item], seed: int, kept: float = 1.0) -> list[Item]:
    """Return ``items``, or about a share ``kept`` of them, in any order."""
    rng = random.Random(seed)
    left = [item for item in items if rng.random() < kept]
    rng.shuffle(left)
    return left


def offered(items: Iterable[Item], step: int) -> list[dict]:
    """Return the items of the input stream."""
    return [{"key": key_of(key), "beat": place, "step": step % (1 << 16), "data": bits}
            for key, place, bits in items]


def power_law(vectors: int, population: int, seed: int) -> list[int]:
    """Return numbers of keys below ``population``, the frequency of each about 1 / (1 + number)."""
    rng = random.Random(seed)
    return [int(population ** rng.random()) - 1 for _ in range(vectors)]


def set_of(number: int, sets: int) -> int:
    """Return the set of a key in a table of ``sets``."""
    key, hashed = key_of(number), 0
    for place, column in enumerate(COLUMNS):
        hashed ^= column * ((key["row"] | key["table"] << 36) >> place & 1)
    return (hashed >> 8) * sets >> 24


def same_set(count: int, sets: int, which: int = 0) -> list[int]:
    """Return the first ``count`` numbers whose keys belong to one set."""
    numbers, number = [], 0
    while len(numbers) < count:
        if set_of(number, sets) == which:
            numbers.append(number)
        number += 1
    return numbers


@dataclass
class Pass:
    """Input and output of a pass."""

    step: int
    given: list[Item]
    taken: list[dict] = field(default_factory=list)
    passed: list[dict] = field(default_factory=list)
    answer: list[dict] = field(default_factory=list)


class Play:
    """Send the beats of each step and flush it, until a pass passes no beat on.

    Passed-on beats return in an order chosen by ``again``; without it, each step has one pass.
    ``rounded`` is set if the block has it. ``enable`` decides at the begin of each step whether
    entries are made.

    Members: ``passes``, and the final ``counters``.
    """

    def __init__(self, dut, steps: Iterable[list[Item]], *, rounded: bool = True,
                 stalls: tuple[float, float] = (0.0, 0.0), seed: int = 0, again: bool = True,
                 enable=None, limit: int = 20_000):
        self.dut, self._steps, self._rounded = dut, steps, rounded
        self._stall_in, self._stall_out = stalls
        self.passes: list[Pass] = []
        self.counters: dict[str, int] = {}
        self._seed, self._again, self._enable = seed, again, enable
        self._begin(STEP, [])
        simulate(powered_up(dut, seed), self._run, background=[
            self._take("o", "taken"), self._take("passed", "passed")], limit=limit)

    def _begin(self, step: int, given: list[Item]) -> Pass:
        self._now = Pass(step % (1 << 16), given)
        return self._now

    async def _run(self, ctx):
        dut, back = self.dut, {numbered(key_of(n)): n for n in range(1000)}
        if hasattr(dut, "rounded"):
            ctx.set(dut.rounded, int(self._rounded))
        for number, items in enumerate(self._steps):
            left = list(items)
            if self._enable is not None:
                ctx.set(dut.enable, int(self._enable()))
            while True:
                now = self._begin(STEP + number, left)
                self.passes.append(now)
                seed = self._seed + len(self.passes)
                await sender(dut.i, offered(left, now.step), stall=self._stall_in, seed=seed)(ctx)
                await sender(dut.flush, [now.step])(ctx)
                await receiver(dut.flushed, now.answer, 1, stall=self._stall_out)(ctx)
                left = shuffled(
                    [(back[numbered(item["key"])], item["beat"], item["data"])
                     for item in now.passed], seed)
                if not left or not self._again:
                    break
        self._begin(0, [])
        cycles = 0
        while not ctx.get(dut.idle):
            await ctx.tick()
            cycles += 1
            assert cycles < 100, "not idle in the end"
        await ctx.tick()
        assert not self._now.taken and not self._now.passed
        self.counters = counts_of(ctx, dut.counters)

    def _take(self, port: str, into: str):
        async def bench(ctx):
            rng = random.Random(self._seed)
            while True:
                one: list[dict] = []
                await receiver(getattr(self.dut, port), one, 1, stall=self._stall_out,
                               seed=rng.getrandbits(32))(ctx)
                getattr(self._now, into).extend(one)
        return bench


def check(play: Play, *, keys: int, ways: int, beats: int = 1, rounded: bool = True,
          lanes: int = 1) -> None:
    """Compare the output of each pass with the exact sums, and check the counts."""
    counted = dict.fromkeys(("beats_in", "keys", "merged", "passed", "dropped", "beats_out"), 0)
    for now in play.passes:
        sums, passed = first_served(now.given, keys // ways, ways, beats)
        assert now.passed == offered(passed, now.step)
        held = {key for key, _ in sums}
        assert now.answer == [{"step": now.step, "keys": len(held), "passed": len(passed)}]
        assert {item["step"] for item in now.taken} <= {now.step}
        whole = {where: _added(terms, lanes) for where, terms in sums.items()}
        lists = defaultdict(list)
        for item in now.taken:
            lists[numbered(item["key"]), item["beat"]].append(item["data"])
        assert lists == {where: beats_of(right, not rounded) for where, right in whole.items()}
        order = [(numbered(item["key"]), item["beat"]) for item in now.taken]
        if rounded:
            ends = {key: max(place for other, place in sums if other == key) for key in held}
            assert [item["last"] for item in now.taken] == [
                int(place == ends[key]) for key, place in order]
            keys_in_turn = [key for key, place in order if place == ends[key]]
            assert order == [(key, place) for key in keys_in_turn
                             for place in sorted(p for other, p in sums if other == key)]
        else:
            assert not any(item["last"] for item in now.taken)
        stray = sum(place >= beats for _, place, _ in now.given)
        for name, more in (("beats_in", len(now.given)), ("beats_out", len(now.taken)),
                           ("keys", len(held)), ("passed", len(passed)), ("dropped", stray),
                           ("merged", len(now.given) - len(passed) - len(sums) - stray)):
            counted[name] += more
    assert {name: play.counters[name] for name in counted} == counted


def first_served(items: Iterable[Item], sets: int, ways: int,
                 beats: int) -> tuple[dict[tuple[int, int], list[int]], list[Item]]:
    """Return the terms by key and beat of the keys that fit into their set, and the others."""
    lines, sums, passed = defaultdict(list), defaultdict(list), []
    for key, place, bits in items:
        if place >= beats:
            continue
        line = lines[set_of(key, sets)]
        if key not in line and len(line) < ways:
            line.append(key)
        if key in line:
            sums[numbered(key_of(key)), place].append(bits)
        else:
            passed.append((key, place, bits))
    return sums, passed


def _added(terms: list[int], lanes: int) -> list[ExactSum]:
    words = [[term >> 32 * lane & 0xFFFFFFFF for lane in range(lanes)] for term in terms]
    return exact_sums(np.array(words, np.uint32).view(np.float32))
