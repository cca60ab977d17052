"""WordStore: segments are read as the beats of their packet, zero behind the last word."""

import random

import pytest

from rtl.bags.word_store import WordStore
from tests.rtl.network.dirty import simulate
from tests.support import made


@pytest.mark.parametrize("buffers, beats", [(4, 3), (5, 2), (3, 22), (70, 1)])
def test_words_of_segments(buffers, beats):
    """Segments of any size, at any word, into buffers in turn, while full buffers are read."""
    rng, dut = random.Random(buffers), made(WordStore, buffers, beats)
    latency = {what: cycles for (what, _), cycles in dut.LATENCY.items()}
    assert latency["read"] == 1  # the packet reader requires it
    held: list[list[int]] = [[] for _ in range(buffers)]
    read = [0]

    async def bench(ctx):
        size = [rng.randrange(1, 8 * beats + 1) for _ in range(buffers)]
        whole: dict[int, int] = {}
        due, shown, wraps = [], None, 0
        for cycle in range(1500):
            buffer = rng.randrange(buffers)
            left = size[buffer] - len(held[buffer])
            writes = left > 0 and rng.random() < 0.9
            first = rng.randrange(8)
            count = min(left, rng.randrange(1, 9 - first)) if writes else rng.randrange(9)
            words = [rng.getrandbits(64) for _ in range(8)]
            position = len(held[buffer]) if writes else rng.randrange(8 * beats)
            wraps += writes and position % 8 + count > 8
            for name, value in (("write", int(writes)), ("buffer", buffer), ("first", first),
                                ("position", position), ("size", count),
                                ("words", sum(word << 64 * k for k, word in enumerate(words)))):
                ctx.set(getattr(dut, name), value)
            if writes:
                held[buffer] += words[first:first + count]
                if len(held[buffer]) == size[buffer]:
                    whole[buffer] = cycle
            ready = [k for k, since in whole.items() if cycle >= since + latency["write"]]
            if not due and ready:
                source = rng.choice(ready)
                due = [(source, number) for number in range(-(-size[source] // 8))]
            reads = bool(due) and rng.random() < 0.8
            ctx.set(dut.read_en, int(reads))
            ctx.set(dut.read_buffer, due[0][0] if reads else rng.randrange(buffers))
            ctx.set(dut.read_beat, due[0][1] if reads else rng.randrange(beats))
            ctx.set(dut.read_units, size[due[0][0]] if reads else rng.randrange(8 * beats + 1))
            if shown is not None:  # until another beat is read
                assert ctx.get(dut.data) == shown, cycle
            if reads:
                source, number = due.pop(0)
                shown = sum(word << 64 * k for k, word in enumerate(
                    held[source][8 * number:8 * number + 8]))
                if not due:
                    read[0] += 1
                    del whole[source]
                    held[source], size[source] = [], rng.randrange(1, 8 * beats + 1)
            await ctx.tick()
        assert wraps > 50 or beats == 1

    simulate(dut, bench)
    assert read[0] > 20
