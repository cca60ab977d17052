"""GradientReducer: what leaves adds up, key by key and step by step, to what came in."""

from collections import Counter, defaultdict

import numpy as np
import pytest

from host.exact_keys import sums_by_key
from rtl.gradient import GradientReducer
from tests.rtl.float.exact_cases import KINDS, beat
from tests.rtl.gradient.reducing import (
    Play,
    beats_of,
    check,
    key_of,
    numbered,
    power_law,
    set_of,
    vectors_of,
)
from tests.rtl.power_up import powered_up
from tests.support import receiver, sender, simulate


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_every_kind_of_number(rounded, stall):
    """Two steps of keys that fit: nothing leaves early."""
    steps = [vectors_of(power_law(80, 12, step), 1, 2, list(KINDS), 7 * step)
             for step in range(2)]
    dut = GradientReducer(64, 8, rounded=rounded, lanes=2)
    play = Play(dut, steps, beats=1, stalls=(stall, stall))
    check(play, keys=64, ways=8, rounded=rounded, lanes=2)
    assert play.counters["retired_early"] == 0
    assert not any(item["partial"] for taken in play.taken for item in taken)
    assert play.counters["merged"] == 160 - sum(len({key for key, _ in one}) for one in steps)


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("ways, vectors, stalls, seed", [
    (1, 80, (0.0, 0.0), 0), (2, 80, (0.3, 0.3), 1), (4, 150, (0.0, 0.8), 2)])
def test_more_keys_than_places(rounded, ways, vectors, stalls, seed):
    """Entries leave early, and their keys come again: in lists that add up exactly."""
    steps = [vectors_of(power_law(vectors, 60, seed + step), 1, 1, list(KINDS), seed + 9 * step)
             for step in range(2)]
    dut = GradientReducer(8, ways, rounded=rounded, lanes=1)
    play = Play(dut, steps, beats=1, stalls=stalls, seed=seed)
    check(play, keys=8, ways=ways, rounded=rounded, lanes=1)
    assert play.counters["retired_early"] > 20
    assert play.counters["stall_output"] > 0 or stalls[1] < 0.8


@pytest.mark.parametrize("rounded, beats, most", [(False, 2, 2), (True, 3, 4), (False, 1, 3)])
def test_vectors_of_several_beats(rounded, beats, most):
    steps = [vectors_of(power_law(50, 20, step), beats, 1, list(KINDS), step) for step in range(2)]
    dut = GradientReducer(8, 4, beats=most, rounded=rounded, lanes=1)
    play = Play(dut, steps, beats=beats, stalls=(0.2, 0.2))
    check(play, keys=8, ways=4, rounded=rounded, lanes=1)
    assert play.counters["retired_early"] > 5


def test_empty_steps_and_steps_ahead():
    """The next step's beats wait at the edge; a step without gradients is answered too."""
    steps = [vectors_of(keys, 1, 1, ["gaussian"], 3) for keys in (
        [1, 2, 1, 1], [], [5, 1], [1] * 20, [])]
    play = Play(GradientReducer(16, 4, rounded=True, lanes=1), steps, beats=1, ahead=True)
    check(play, keys=16, ways=4, rounded=True, lanes=1)
    assert [answer["keys"] for answer in play.flushed] == [2, 0, 2, 1, 0]
    assert play.counters["stall_step"] > 20


def test_other_steps():
    """A flush of one is answered at once; a beat of one waits until the open step is flushed."""
    dut = GradientReducer(16, 4, rounded=True, lanes=1)
    answers: list[dict] = []
    taken: list[dict] = []

    async def bench(ctx):
        async def add(numbers, step):
            await sender(dut.i, beats_of(vectors_of(numbers, 1, 1, ["gaussian"], 1), step))(ctx)
            await ctx.tick().repeat(30)

        async def flush(step):
            await sender(dut.flush, [step])(ctx)
            await receiver(dut.flushed, answers, len(answers) + 1)(ctx)

        await add([1, 2], 7)
        await flush(6)
        assert not taken
        await add([1, 2], 7)
        await add([3], 8)
        await flush(7)
        await add([2], 8)
        await flush(8)

    simulate(powered_up(dut), bench, background=[receiver(dut.o, taken, 5)], limit=1000)
    assert answers == [{"step": step, "keys": keys} for step, keys in ((6, 0), (7, 2), (8, 2))]
    assert Counter((numbered(item["key"]), item["step"], item["count"]) for item in taken) == {
        (numbered(key_of(number)), step, 1): 1 for number, step in ((1, 7), (2, 7), (2, 8), (3, 8))}


def test_rounded_sums_are_those_of_the_reference():
    """Against the host's sums of whole arrays."""
    vectors = vectors_of(power_law(100, 30, 5), 1, 2, list(KINDS), 11)
    play = Play(GradientReducer(64, 8, rounded=True, lanes=2), [vectors], beats=1)
    keys, sums = sums_by_key(np.array([numbered(key_of(key)) for key, _ in vectors]),
                             np.stack([data[0] for _, data in vectors]).view(np.float32))
    got = {numbered(item["key"]): item["data"] for item in play.taken[0]}
    assert got == {int(key): beat(row) for key, row in zip(keys, sums.view(np.uint32))}


def test_the_oldest_key_leaves():
    """Sets of two ways, one set's keys: the one used longest ago goes, the others stay."""
    dut = GradientReducer(4, 2, rounded=False, lanes=1)
    sets = defaultdict(list)
    for number in range(40):
        sets[set_of(number, 2)].append(number)
    a, b, c = sets[0][:3]
    play = Play(dut, [vectors_of([a, b, a, c, a, a, c], 1, 1, ["gaussian"], 1)], beats=1)
    check(play, keys=4, ways=2, rounded=False, lanes=1)
    lists = Counter(numbered(item["key"]) for item in play.taken[0] if item["count"] == 1)
    assert lists == {numbered(key_of(key)): 1 for key in (a, b, c)}
    assert play.counters["retired_early"] == 1
    assert numbered(play.taken[0][0]["key"]) == numbered(key_of(b))


@pytest.mark.parametrize("field, sizes", [
    ("keys", {"keys": 12}), ("keys", {"keys": 4}), ("ways", {"ways": 3}), ("ways", {"ways": 32}),
    ("ways", {"ways": True}), ("beats", {"beats": 0}), ("beats", {"beats": 17})])
def test_sizes_out_of_range(field, sizes):
    with pytest.raises(ValueError, match=f"^{field} must be .* not {sizes[field]}$"):
        GradientReducer(**{"keys": 16, "ways": 4, "rounded": True, **sizes})
