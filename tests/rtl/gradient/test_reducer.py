"""GradientReducer: the output adds up to the input, key by key and pass by pass."""

import numpy as np
import pytest

from host.dlrm.exact_keys import sums_by_key
from rtl.formats import GradientBeat
from rtl.gradient import GradientReducer, gradient_beat_layout
from tests.rtl.float.exact_cases import KINDS
from tests.rtl.gradient.reducing import (
    STEP,
    Play,
    check,
    key_of,
    numbered,
    offered,
    power_law,
    same_set,
    shuffled,
    vectors_of,
)
from tests.rtl.power_up import powered_up
from tests.support import a_bit_apart, made, receiver, sender, simulate


@pytest.mark.few(2)
@pytest.mark.parametrize("split, rounded, stall", [
    (False, True, 0.4), (True, True, 0.0), (True, False, 0.0), (True, False, 0.4)])
def test_every_kind_of_number(split, rounded, stall):
    """Two steps of keys that fit: one pass each."""
    steps = [vectors_of(power_law(60, 12, step), 1, 2, list(KINDS), 7 * step)
             for step in range(2)]
    dut = made(GradientReducer, 64, 8, split=split, lanes=2)
    play = Play(dut, steps, rounded=rounded, stalls=(stall, stall))
    check(play, keys=64, ways=8, rounded=rounded, lanes=2)
    assert len(play.passes) == 2 and play.counters["merged"] > 60


@pytest.mark.few(1, "thorough")
@pytest.mark.few(3)
@pytest.mark.parametrize("split, rounded, ways, vectors, stalls, seed", [
    (False, True, 1, 40, (0.0, 0.0), 0), (False, True, 2, 40, (0.3, 0.3), 1),
    pytest.param(True, True, 2, 40, (0.3, 0.0), 3, marks=pytest.mark.slow),
    (True, True, 4, 60, (0.0, 0.8), 2),
    (True, False, 2, 40, (0.3, 0.3), 1), (True, False, 4, 60, (0.0, 0.8), 2)])
def test_more_keys_than_places(split, rounded, ways, vectors, stalls, seed):
    """What is passed on comes back until each key had its pass."""
    steps = [vectors_of(power_law(vectors, 50, seed + step), 1, 1, list(KINDS), seed + 9 * step)
             for step in range(2)]
    dut = made(GradientReducer, 8, ways, split=split, lanes=1)
    play = Play(dut, steps, rounded=rounded, stalls=stalls, seed=seed)
    check(play, keys=8, ways=ways, rounded=rounded)
    assert len(play.passes) >= 4 and play.counters["passed"] > 20
    assert all(now.answer[0]["keys"] for now in play.passes)
    assert play.counters["stall_passed"] > 0 or stalls[1] < 0.8
    if rounded:
        assert_each_once(play, steps)


def test_without_entries_all_is_passed_on_as_it_came():
    """The register may change from step to step."""
    steps = [vectors_of(power_law(20, 6, step), 1, 1, list(KINDS), step) for step in range(3)]
    dut = GradientReducer(16, 4, split=True, lanes=1)

    def switched():
        for number, items in enumerate(steps):
            dut.wanted = number != 1
            yield items

    play = Play(dut, switched(), rounded=False, again=False, enable=lambda: dut.wanted)
    first, off, last = play.passes
    assert off.passed == offered(off.given, off.step) and not off.taken
    assert off.answer == [{"step": off.step, "keys": 0, "passed": 20}]
    for now in (first, last):
        assert now.taken and not now.passed and now.answer[0]["keys"]


def assert_each_once(play: Play, steps) -> None:
    """Each beat of each key has one sum in its step, over all passes, equal to the host's."""
    for number, items in enumerate(steps):
        places = np.array([numbered(key_of(key)) << 4 | place for key, place, _ in items])
        words = np.array([[bits] for *_, bits in items], np.uint32)
        expected, sums = sums_by_key(places, words.view(np.float32))
        got = [(numbered(item["key"]) << 4 | item["beat"], item["data"]) for now in play.passes
               if now.step == (STEP + number) % (1 << 16) for item in now.taken]
        assert sorted(got) == list(zip(expected.tolist(), sums.view(np.uint32)[:, 0].tolist()))


@pytest.mark.few(2)
@pytest.mark.parametrize("split, rounded, beats, kept, stall", [
    (False, True, 3, 1.0, 0.2), (False, True, 4, 0.4, 0.0), (True, True, 2, 0.7, 0.3),
    (True, False, 3, 0.8, 0.2), (False, True, 16, 0.2, 0.0)])
def test_beats_in_any_order(split, rounded, beats, kept, stall):
    """Vectors of several beats, of which some are absent; those that leave are in order."""
    vectors = 20 if beats == 16 else 40
    steps = [shuffled(vectors_of(power_law(vectors, 16, step), beats, 1, list(KINDS), step),
                      step, kept) for step in range(2)]
    dut = made(GradientReducer, 8, 4, beats=beats, split=split, lanes=1)
    play = Play(dut, steps, rounded=rounded, stalls=(stall, stall))
    check(play, keys=8, ways=4, beats=beats, rounded=rounded)
    assert len(play.passes) > 2
    if rounded:
        assert_each_once(play, steps)


def test_steps_are_compared_in_all_their_bits():
    """Steps a bit apart: flushes of another step answer nothing, and its beats wait."""
    dut, others = made(GradientReducer, 8, 2, split=False, lanes=1), a_bit_apart(STEP)
    steps, out, answers = [STEP, *others], [], []
    words = np.arange(1, 18, dtype=np.float32).view(np.uint32).tolist()
    key = {"row": 3, "table": 1}
    beats = [{"key": key, "beat": 0, "step": step, "data": word}
             for step, word in zip(steps, words)]

    async def flushes(ctx):
        while not ctx.get(dut.counters.stall_step):
            await ctx.tick()
        await sender(dut.flush, [*others, *steps])(ctx)

    simulate(powered_up(dut), flushes, sender(dut.i, beats), receiver(dut.o, out, len(steps)),
             receiver(dut.flushed, answers, len(others) + len(steps)), limit=3_000)
    assert answers == [{"step": step, "keys": int(n >= len(others)), "passed": 0}
                       for n, step in enumerate([*others, *steps])]
    assert [(item["step"], item["data"]) for item in out] == list(zip(steps, words))


def test_all_keys_in_one_set():
    """As many passes as it takes; the other sets stay empty."""
    numbers = same_set(11, 4, which=2) * 4
    steps = [shuffled(vectors_of(numbers, 2, 1, ["gaussian"], 1), 5)]
    play = Play(made(GradientReducer, 16, 4, beats=2, split=False, lanes=1), steps)
    check(play, keys=16, ways=4, beats=2)
    assert [now.answer[0]["keys"] for now in play.passes] == [4, 4, 3]
    assert_each_once(play, steps)


def test_keys_close_together():
    """The pipeline's decisions reach the beats behind: bursts of few keys of the same set."""
    a, b, c = same_set(3, 2)
    other = same_set(1, 2, which=1)[0]
    orders = [[a, a, b, a, c, c, b, c, a], [a, b, c, c, c, c, b, a], [a, other, b, other, c, b, a],
              [c, other, other, a, other, other, b, c, a, b], [a, b, b, b, b, c, a, c, b, c]]
    steps = [vectors_of(numbers, 2, 1, ["gaussian"], n) for n, numbers in enumerate(orders)]
    play = Play(made(GradientReducer, 4, 2, beats=2, split=False, lanes=1), steps)
    check(play, keys=4, ways=2, beats=2)
    assert all(len({key for key, *_ in now.given}) <= 2 or now.passed for now in play.passes
               if not {other} & {key for key, *_ in now.given})


def test_empty_steps():
    steps = [vectors_of(keys, 1, 1, ["gaussian"], 3) for keys in ([], [1, 2, 1], [], [5], [])]
    play = Play(made(GradientReducer, 16, 4, split=False, lanes=1), steps)
    check(play, keys=16, ways=4)
    assert [now.answer[0]["keys"] for now in play.passes] == [0, 2, 0, 1, 0]


def test_beats_beyond_the_vector_are_dropped():
    """They neither take an entry nor open a step."""
    items = vectors_of([1, 2, 1, 3], 4, 1, ["gaussian"], 3)
    strays = [(1, 3, 1), (9, 15, 2), (2, 3, 3)]
    play = Play(made(GradientReducer, 16, 4, beats=3, split=False, lanes=1),
                [strays, [*strays, *items], strays])
    check(play, keys=16, ways=4, beats=3)
    assert [now.answer[0]["keys"] for now in play.passes] == [0, 3, 0]
    assert play.counters["dropped"] == 13


def test_a_beat_that_is_dropped_moves():
    """Until it is counted, the block is not idle."""
    dut = made(GradientReducer, 4, 2, split=False, lanes=1)

    async def bench(ctx):
        while not ctx.get(dut.idle):
            await ctx.tick()
        for _ in range(3):
            await sender(dut.i, offered([(1, 1, 0)], 9))(ctx)
            dropped = ctx.get(dut.counters.dropped)
            assert not ctx.get(dut.idle)
            await ctx.tick()
            assert ctx.get(dut.counters.dropped) == dropped + 1
            assert ctx.get(dut.idle)

    simulate(powered_up(dut), bench, limit=100)


def test_steps_ahead():
    """The next steps' beats wait at the edge until theirs is flushed and answered."""
    dut = made(GradientReducer, 16, 4, split=False, lanes=1)
    steps = [vectors_of(numbers, 1, 1, ["gaussian"], 3) for numbers in ([1, 2, 1], [5, 1], [1] * 9)]
    sent, answers, taken = [], [], []

    async def send(ctx):
        for number, items in enumerate(steps):
            await sender(dut.i, offered(items, number))(ctx)
            sent.append(number)

    async def flush(ctx):
        for number in range(len(steps)):
            # Two beats fit before the table.
            while len(sent) <= number and ctx.get(dut.counters.stall_step) <= 20 * number:
                await ctx.tick()
            await ctx.tick().repeat(40)
            assert len(answers) == number
            await sender(dut.flush, [number])(ctx)
            await receiver(dut.flushed, answers, number + 1)(ctx)
            assert {item["step"] for item in taken} == set(range(number + 1))

    simulate(powered_up(dut), send, flush, background=[receiver(dut.o, taken, 100)], limit=2000)
    assert answers == [{"step": step, "keys": keys, "passed": 0}
                       for step, keys in ((0, 2), (1, 2), (2, 1))]
    assert sorted((item["step"], numbered(item["key"])) for item in taken) == sorted(
        (step, numbered(key_of(key))) for step, items in enumerate(steps)
        for key in {key for key, *_ in items})


def test_other_steps():
    """A flush of one is answered at once; a beat of one waits until the open step is flushed."""
    dut = made(GradientReducer, 4, 2, split=False, lanes=1)
    a, b, c = same_set(3, 2)
    answers: list[dict] = []
    taken: list[dict] = []
    passed: list[dict] = []

    async def bench(ctx):
        async def add(numbers, step):
            await sender(dut.i, offered(vectors_of(numbers, 1, 1, ["gaussian"], 1), step))(ctx)
            await ctx.tick().repeat(30)

        async def flush(step):
            await sender(dut.flush, [step])(ctx)
            await receiver(dut.flushed, answers, len(answers) + 1)(ctx)

        while not ctx.get(dut.idle):
            await ctx.tick()
        await sender(dut.i, offered([(a, 1, 0)], 9))(ctx)  # beyond the vector: opens nothing
        await add([a, b, c], 7)
        await flush(6)
        assert not taken and len(passed) == 1
        await add([a, b], 7)
        await add([c], 8)
        await flush(7)
        await add([b], 8)
        await flush(6)
        await flush(8)
        # A flush in the cycle of the first beat of another step.
        await sender(dut.i, offered([(a, 0, 3)], 10))(ctx)
        await flush(9)
        await flush(10)

    simulate(powered_up(dut), bench, background=[
        receiver(dut.o, taken, 9), receiver(dut.passed, passed, 5)], limit=1000)
    assert answers == [{"step": step, "keys": keys, "passed": passes}
                       for step, keys, passes in (
                           (6, 0, 0), (7, 2, 1), (6, 0, 0), (8, 2, 0), (9, 0, 0), (10, 1, 0))]
    assert sorted((numbered(item["key"]), item["step"]) for item in taken) == sorted(
        (numbered(key_of(number)), step) for number, step in (
            (a, 7), (b, 7), (b, 8), (c, 8), (a, 10)))


def test_reading_out_waits():
    """More sums than there is room for behind the table, to the last one; none is lost."""
    dut = made(GradientReducer, 128, 8, split=False, lanes=1)
    numbers = [number for which in range(6, 16) for number in same_set(8, 16, which)]
    items = vectors_of(numbers, 1, 1, ["gaussian"], 4)
    answers, taken = [], []

    async def bench(ctx):
        await sender(dut.i, offered(items, 0))(ctx)
        await sender(dut.flush, [0])(ctx)
        await ctx.tick().repeat(200)
        assert ctx.get(dut.counters.stall_output) > 50 and not ctx.get(dut.flushed.valid)
        # One by one, until the last sum has found room.
        for count in range(1, 21):
            await receiver(dut.o, taken, count)(ctx)
            await ctx.tick().repeat(12)
        await receiver(dut.o, taken, 80)(ctx)
        await receiver(dut.flushed, answers, 1)(ctx)

    simulate(powered_up(dut), bench, limit=1000)
    assert answers == [{"step": 0, "keys": 80, "passed": 0}]
    assert {(numbered(item["key"]), item["data"]) for item in taken} == {
        (numbered(key_of(key)), bits) for key, _, bits in items}


def test_the_answer_waits_for_what_is_passed_on():
    dut = made(GradientReducer, 2, 1, split=False, lanes=1)
    items = vectors_of(same_set(2, 2), 1, 1, ["gaussian"], 4)
    answers, passed = [], []

    async def bench(ctx):
        await sender(dut.i, offered(items, 0))(ctx)
        await sender(dut.flush, [0])(ctx)
        await ctx.tick().repeat(60)
        assert not ctx.get(dut.flushed.valid) and not ctx.get(dut.idle)
        await receiver(dut.passed, passed, 1)(ctx)
        await receiver(dut.flushed, answers, 1)(ctx)

    simulate(powered_up(dut), bench, background=[receiver(dut.o, [], 1)], limit=200)
    assert answers == [{"step": 0, "keys": 1, "passed": 1}]
    assert passed == offered(items[1:], 0)


def test_layouts():
    """With 16 lanes beats are those of the formats."""
    dut = made(GradientReducer, 16, 4, beats=4, split=True)
    assert dut.i.payload.shape() == dut.passed.payload.shape() == GradientBeat
    assert gradient_beat_layout(2)["data"].width == 64
    assert not hasattr(GradientReducer(16, 4, split=False), "rounded")


@pytest.mark.parametrize("field, sizes", [
    ("keys", {"keys": 12}), ("keys", {"keys": 4}), ("ways", {"ways": 3}), ("ways", {"ways": 32}),
    ("ways", {"ways": True}), ("beats", {"beats": 0}), ("beats", {"beats": 17})])
def test_sizes_out_of_range(field, sizes):
    with pytest.raises(ValueError, match=f"^{field} must be .* not {sizes[field]}$"):
        GradientReducer(**{"keys": 16, "ways": 4, "split": True, **sizes})
