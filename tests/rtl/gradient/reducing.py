"""Drive a GradientReducer step by step, and what has to leave it."""

import random
from collections import defaultdict

import numpy as np

from host.exact import ExactSum, exact_sums, nearest, split
from rtl.hash_columns import COLUMNS
from tests.rtl.float.exact_cases import MINUS_ZERO, beat, terms_of_kind
from tests.rtl.power_up import powered_up
from tests.support import receiver, sender, simulate

__all__ = ["Play", "beats_of", "check", "key_of", "numbered", "power_law", "set_of", "vectors_of"]

STEP = 65535
"""Of the first step; the next ones wrap."""


def key_of(number: int) -> dict:
    """Return the key that a test calls ``number``."""
    return {"row": number * 0x9_1357_9BDF & (1 << 36) - 1, "table": number % 26}


def vectors_of(keys, beats: int, lanes: int, kinds, seed: int) -> list[tuple[int, np.ndarray]]:
    """Return (key's number, uint32 [beats, lanes]); the terms of a key are of one of ``kinds``."""
    rng = np.random.default_rng(seed)
    data = np.zeros((len(keys), beats, lanes), np.uint32)
    for key in sorted(set(keys)):
        mine = [n for n, other in enumerate(keys) if other == key]
        terms = terms_of_kind(rng.choice(kinds), len(mine), beats * lanes, seed + key)
        data[mine] = terms.reshape(len(mine), beats, lanes)
    return list(zip(keys, data))


def beats_of(vectors, step: int) -> list[dict]:
    """Return the beats of ``vectors``."""
    return [{"key": key_of(key), "step": step % (1 << 16), "data": beat(words),
             "last": int(n == len(data) - 1)}
            for key, data in vectors for n, words in enumerate(data)]


def numbered(key: dict) -> int:
    """Return a key as one number."""
    return key["row"] << 12 | key["table"]


class Play:
    """Send the vectors of each step, flush it, and take what leaves until it is answered."""

    def __init__(self, dut, steps, *, beats: int, stalls: tuple[float, float] = (0.0, 0.0),
                 seed: int = 0, ahead: bool = False):
        self.dut, self.steps, self.beats = dut, steps, beats
        self.stall_in, self.stall_out = stalls
        self.taken: list[list[dict]] = [[]]
        self.flushed: list[dict] = []
        self.counters: dict[str, int] = {}
        self._sent, self._seed, self._ahead = 0, seed, ahead
        simulate(powered_up(dut, seed), self._send, self._flush, self._answers,
                 background=[self._take], limit=20_000)

    async def _send(self, ctx):
        ctx.set(self.dut.vector_beats, self.beats)
        for number, vectors in enumerate(self.steps):
            while not self._ahead and len(self.flushed) < number:
                await ctx.tick()
            await sender(self.dut.i, beats_of(vectors, STEP + number), stall=self.stall_in,
                         seed=self._seed + number)(ctx)
            self._sent += 1

    async def _flush(self, ctx):
        for number in range(len(self.steps)):
            while self._sent <= number:
                await ctx.tick()
            await sender(self.dut.flush, [(STEP + number) % (1 << 16)])(ctx)

    async def _answers(self, ctx):
        cycle = 0
        while len(self.flushed) < len(self.steps):
            await receiver(self.dut.flushed, self.flushed, len(self.flushed) + 1,
                           stall=self.stall_out)(ctx)
            self.taken.append([])
        while not ctx.get(self.dut.idle):
            await ctx.tick()
            cycle += 1
            assert cycle < 100, "not idle in the end"
        await ctx.tick()
        self.counters = {name: ctx.get(self.dut.counters[name])
                         for name in self.dut.counters.shape().members}

    async def _take(self, ctx):
        rng = random.Random(self._seed)
        while True:
            one: list[dict] = []
            await receiver(self.dut.o, one, 1, stall=self.stall_out, seed=rng.getrandbits(32))(ctx)
            self.taken[len(self.flushed)].extend(one)


def check(play: Play, *, keys: int, ways: int, rounded: bool, lanes: int) -> None:
    """Compare what left with the exact sums; every number that is counted too."""
    vectors, outgoing, entries = 0, 0, 0
    assert not play.taken[len(play.steps)]
    for number, given in enumerate(play.steps):
        lists = lists_of(play.taken[number], (STEP + number) % (1 << 16), play.beats, lanes)
        outgoing += len(play.taken[number])
        sums = expected_sums(given)
        assert {key for key, _ in lists} == set(sums)
        for (key, place), parts in lists.items():
            right = sums[key][place]
            whole = [sum((total[lane] for _, total, _ in parts), ExactSum())
                     for lane in range(lanes)]
            partial = {flag for flag, _, _ in parts}
            if rounded and partial == {0}:
                (_, _, terms), = parts
                assert terms == [beat(nearest(total) for total in right)]
                continue
            for lane in range(lanes):
                assert equivalent(whole[lane], right[lane]), (key, place, lane)
            # Terms of several lists of a key may take turns: which is whose cannot be seen.
            if len(parts) == 1:
                assert parts[0][2] == shortest(right)
            else:
                assert partial == {1}
        left = sum(len(parts) for (_, place), parts in lists.items() if place == 0)
        assert play.flushed[number] == {"step": (STEP + number) % (1 << 16), "keys": left}
        vectors, entries = vectors + len(given), entries + left
    counters = play.counters
    assert counters["beats_in"] == vectors * play.beats and counters["beats_out"] == outgoing
    assert counters["keys"] == entries and counters["merged"] == vectors - entries
    assert counters["retired_early"] == retired(play.steps, keys // ways, ways)


def lists_of(taken, step, beats, lanes):
    """Return, by key and place in its vector, (partial, what it adds up to, beats) of each list."""
    unfinished, lists = {}, defaultdict(list)
    for item in taken:
        assert item["step"] == step and item["beat"] < beats
        where = numbered(item["key"]), item["beat"]
        matching = [terms for terms in unfinished.setdefault(where, [])
                    if len(terms) + 1 == item["count"]]
        terms = matching[0] if matching else []
        if not matching:
            assert item["count"] == 1
            unfinished[where].append(terms)
        terms.append(item["data"])
        if item["last"]:
            unfinished[where] = [other for other in unfinished[where] if other is not terms]
            words = np.array([[term >> 32 * lane & 0xFFFFFFFF for lane in range(lanes)]
                              for term in terms], np.uint32)
            lists[where].append((item["partial"], exact_sums(words.view(np.float32)), terms))
    assert not any(unfinished.values())
    return lists


def expected_sums(vectors):
    """Return, by key, the exact sums of each beat."""
    data = defaultdict(list)
    for key, words in vectors:
        data[numbered(key_of(key))].append(words)
    return {key: [exact_sums(np.stack(terms)[:, place].view(np.float32))
                  for place in range(terms[0].shape[0])] for key, terms in data.items()}


def equivalent(one: ExactSum, other: ExactSum) -> bool:
    """Say whether two sums are the same to whoever adds them up; infinities leave nothing else."""
    if one.plus or one.minus:
        return (one.plus, one.minus) == (other.plus, other.minus)
    return one == other


def shortest(sums: list[ExactSum]) -> list[int]:
    """Return the beats of the shortest list of the ``sums`` of its lanes."""
    terms = [split(total) for total in sums]
    filler = [0 if total.other else MINUS_ZERO for total in sums]
    return [beat(lane[k] if k < len(lane) else zero for lane, zero in zip(terms, filler))
            for k in range(max(map(len, terms)))]


def set_of(number: int, sets: int) -> int:
    """Return the set of a key in a table of ``sets``."""
    key, hashed = key_of(number), 0
    for place, column in enumerate(COLUMNS):
        hashed ^= column * ((key["row"] | key["table"] << 36) >> place & 1)
    return (hashed >> 8) * sets >> 24


def retired(steps, sets: int, ways: int) -> int:
    """Return how many entries a table retires early, by a list of each set's keys in order."""
    early = 0
    for vectors in steps:
        order: dict[int, list[int]] = defaultdict(list)
        for key, _ in vectors:
            keys = order[set_of(key, sets)]
            if key in keys:
                keys.remove(key)
            elif len(keys) == ways:
                keys.pop(0)
                early += 1
            keys.append(key)
    return early


def power_law(vectors: int, population: int, seed: int) -> list[int]:
    """Return numbers of keys below ``population``, the frequency of each about 1 / (1 + number)."""
    rng = random.Random(seed)
    return [int(population ** rng.random()) - 1 for _ in range(vectors)]
