"""WordRing: a bag is equal if all its words, without unused halves, equal the older words."""

import random

import pytest

from rtl.bags import WordRing
from rtl.formats import words_of
from tests.rtl.bags.words import bag, segments_of
from tests.support import made, simulate

WORDS = 256


def stored(words: list[int]) -> list[int]:
    """Return the words behind the head of a bag, without the bits that are not used."""
    keys, wide, weighted = words[0] & 0xFFFF, words[0] >> 16 & 1, words[0] >> 17 & 1
    found = list(words[1:])
    if keys & 1:
        for last in ([(keys + 1) // 2 - 1] if not wide else []) + ([-1] if weighted else []):
            found[last] &= 0xFFFF_FFFF
    return found


def segments(rng: random.Random, words: list[int]) -> list[dict]:
    """Return the segments of a bag of ``words``, which begins at a random word of a beat."""
    at = rng.randrange(8)
    before, after = (rng.getrandbits(48) for _ in range(2))  # records of kind KEY
    return [item["segment"] for item in segments_of(
        [before] * at + words + [after] * rng.randrange(3), 0, 1000) if not item["plain"]]


def items_of(rng: random.Random, words: list[int], old: int, new: int, compares: int,
             writes: int) -> list[dict]:
    found, done = [], 0
    for segment in segments(rng, words):
        found.append({
            "segment": segment, "wide": words[0] >> 16 & 1, "weighted": words[0] >> 17 & 1,
            "odd": words[0] & 1, "old": (old + done) % WORDS, "new": (new + done) % WORDS,
            "compares": compares, "writes": writes})
        done += segment["size"] - segment["head"]
    return found


def verdicts(items: list[dict | None]) -> list[int]:
    dut, found = made(WordRing, WORDS), []

    async def watch(ctx):
        async for _, _, valid, equal in ctx.tick().sample(dut.o.valid, dut.o.equal):
            if valid:
                found.append(equal)

    async def feed(ctx):
        assert ctx.get(dut.idle)
        for item in items:
            ctx.set(dut.i.valid, int(item is not None))
            if item is not None:
                ctx.set(dut.i.payload, item)
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(WordRing.LATENCY["tail", "its verdict"] + 1)
        assert ctx.get(dut.idle)

    simulate(dut, feed, background=[watch])
    return found


def changed(rng: random.Random, words: list[int]) -> list[int]:
    """Return ``words`` with one bit behind the head inverted, which may be unused."""
    found = list(words)
    found[rng.randrange(1, len(words))] ^= 1 << rng.randrange(64)
    return found


@pytest.mark.parametrize("gaps", [0.0, 0.4])
@pytest.mark.parametrize("wide, weighted", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_every_used_bit_counts(wide, weighted, gaps):
    rng, items, expected, new, old = random.Random(wide + 2 * weighted), [], [], 0, None
    words: list[int] = []
    for _ in range(150):
        again = old is not None and rng.random() < 0.7
        before = words
        if not again:
            words = bag(rng, rng.choice([1, 2, 3, 15, 16, rng.randrange(1, 60)]), wide=wide,
                        weighted=weighted)
        elif rng.random() < 0.6:
            words = changed(rng, words)
        items += items_of(rng, words, old if again and old is not None else 0, new, int(again), 1)
        items += [None, None]
        if rng.random() < gaps:
            items += [None] * rng.randrange(4)
        expected.append(int(again and stored(words) == stored(before)))
        old, new = new, (new + words_of(words[0] & 0xFFFF, wide, weighted)) % WORDS
    assert verdicts(items) == expected
    assert 30 < sum(expected) < 120


def test_only_words_with_writes_are_stored():
    rng = random.Random(5)
    first, second = bag(rng, 20), bag(rng, 20)
    items = [*items_of(rng, first, 0, 7, 0, 1), None, *items_of(rng, second, 7, 7, 1, 0), None,
             *items_of(rng, first, 7, 7, 1, 0)]
    assert verdicts(items) == [0, 0, 1]


def test_a_bag_does_not_repeat_without_compares():
    rng = random.Random(6)
    words = bag(rng, 5)
    items = [*items_of(rng, words, 0, 3, 0, 1), None, *items_of(rng, words, 3, 30, 0, 1), None,
             *items_of(rng, words, 3, 60, 1, 1)]
    assert verdicts(items) == [0, 0, 1]


@pytest.mark.parametrize("words", [8, 100, True, "16"])
def test_bad_sizes(words):
    with pytest.raises(ValueError, match="words must be a power of two of at least 16"):
        WordRing(words)
