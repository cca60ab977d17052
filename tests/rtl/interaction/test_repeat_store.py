"""RepeatStore: a repeat gets the beats of the last kept bag at its position."""

import random

import pytest

from rtl.config import preset
from rtl.interaction import RepeatStore
from tests.support import counts_of, made, quiet_while_idle, receiver, sender, simulate

POSITIONS = 4
CONFIG = preset("tiny").with_fields(owner_bags=16, repeat_words=64, repeat_vectors=POSITIONS)


def beats_of(rng: random.Random, bags: int, beats: int):
    """Return the beats of random bags, and the beats that leave."""
    came: list[dict] = []
    left: list[dict] = []
    stored: dict[int, list[tuple[int, int]]] = {}
    for number in range(bags):
        position = rng.randrange(POSITIONS)
        repeat = int(position in stored and rng.random() < 0.5)
        kept = int(not repeat and rng.random() < 0.6)
        lost = int(rng.random() < 0.2)
        values = [(0, 0) if repeat else (rng.getrandbits(512), lost) for _ in range(beats)]
        if kept:
            stored[position] = values
        for beat, (given, told) in enumerate(zip(
                values, stored[position] if repeat else values, strict=True)):
            common = {"beat_last": int(beat == beats - 1), "bag_last_of_sample": rng.getrandbits(1),
                      "sample": number, "step": rng.getrandbits(16)}
            came.append(common | {"data": given[0], "lost": given[1], "repeat": repeat,
                                  "kept": kept, "position": position})
            left.append(common | {"data": told[0], "lost": told[1]})
    return came, left


@pytest.mark.parametrize("beats", [1, 3, 4])
@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.4, 0.0), (0.0, 0.5), (0.3, 0.3)])
def test_repeats_get_the_vector_of_their_position(beats, stalls):
    dut, out = made(RepeatStore, CONFIG), []
    came, left = beats_of(random.Random(beats), 100, beats)
    ends = [beat for beat in came if beat["beat_last"]]

    async def end(ctx):
        while len(out) < len(left) or not ctx.get(dut.idle):
            await ctx.tick()
        assert counts_of(ctx, dut.counters) == {
            "kept": sum(beat["kept"] for beat in ends),
            "repeats": sum(beat["repeat"] for beat in ends)}

    cycles = simulate(
        dut, sender(dut.i, came, stall=stalls[0]),
        receiver(dut.o, out, len(left), stall=stalls[1], seed=2), end,
        background=[quiet_while_idle(dut.idle, [dut.i.valid], [dut.o.valid & dut.o.ready])])
    assert out == left
    if not any(stalls):
        assert cycles <= len(left) + RepeatStore.LATENCY["beat", "the same beat"] + 2


def test_bad_configurations():
    with pytest.raises(TypeError, match="config must be a NicConfig"):
        RepeatStore(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="repeat_words must be above 0, with owner_bags, not 0"):
        RepeatStore(preset("tiny"))
