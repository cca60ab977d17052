"""Transposer against a plain model: slices come in order, void vectors do not."""

import random

import pytest

from rtl.config import preset
from rtl.interaction.transpose import Transposer
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate


def random_samples(rng, most, beats):
    """Return samples: the beats of each of their vectors; one in four has too many vectors."""
    return [[[rng.getrandbits(512) for _ in range(rng_beats)] for _ in range(vectors)]
            for vectors, rng_beats in ((rng.choice((1, 2, most, rng.randrange(1, 3 * most))),
                                        rng.randrange(1, beats + 1)) for _ in range(14))]


@pytest.mark.few(5)
@pytest.mark.parametrize("stall", [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.3, 0.3)])
@pytest.mark.parametrize("most, beats", [(5, 4), (8, 3), (33, 1)])
def test_slices(most, beats, stall):
    dut = made(Transposer, preset("tiny").with_fields(
        interaction_vectors=most, max_dimension=16 * beats))
    samples = random_samples(random.Random(most), most, beats)
    items, expected, taken = [], [], []
    for vectors in samples:
        slices = len(vectors[0])
        items += [{"data": beat, "void": int(k >= most), "vector_last": int(s == slices - 1),
                   "sample_last": int(k == len(vectors) - 1)}
                  for k, vector in enumerate(vectors) for s, beat in enumerate(vector)]
        kept = vectors[:most]
        expected += [{"data": vector[s], "void": 0, "last": int(k == len(kept) - 1),
                      "first": int(s == 0), "final": int(s == slices - 1)}
                     for s in range(slices) for k, vector in enumerate(kept)]

    async def take(ctx):
        await receiver(dut.o, taken, len(expected), stall=stall[1], seed=2)(ctx)
        await ctx.tick()
        assert ctx.get(dut.idle)

    simulate(powered_up(dut), sender(dut.i, items, stall=stall[0]), take)
    assert taken == expected


def test_a_beat_a_cycle():
    dut = made(Transposer, preset("tiny").with_fields(interaction_vectors=27))
    items = [{"data": n, "void": 0, "vector_last": int(n % 4 == 3),
              "sample_last": int(n // 4 % 27 == 26)} for n in range(8 * 108)]
    taken: list[dict] = []
    cycles = simulate(powered_up(dut), sender(dut.i, items), receiver(dut.o, taken, len(items)))
    # The first sample is held until it is complete.
    assert cycles <= 9 * 108 + 4
