"""Gradient expander alone: more bags than it has room for, and slow vectors."""

import random

import pytest

from rtl.config import LANES, beats_of, packing_of, preset
from rtl.gradient import GradientExpander
from tests.rtl.descriptors import Table
from tests.rtl.gradient.packets import KEY_END, Reading, packet
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate

STEP = 7


@pytest.mark.parametrize("dimension, lengths, stall", [
    (16, [100, *[1] * 120], 0.0), (48, [1, 2, *[1] * 20, 40, *[1] * 30], 0.5)])
def test_vectors_wait_for_the_keys_of_a_long_bag(dimension, lengths, stall):
    rng = random.Random(dimension)
    given = packet(lengths, dimension, lambda: (0, rng.randrange(50)), rng, STEP)
    reading = Reading({0: Table(rows=50, owner=2)}, 0, 6, STEP, dimension, True)
    reading.read(given)
    dut, out = made(GradientExpander, preset("tiny")), []
    keys = [{"item": {"key": {"row": row, "table": table}, "step": STEP,
                      "end": int(kind == KEY_END), "over": 0}, "last": 0, "drop": 0}
            for table, row, kind in given.records]
    bags = [{"item": length, "last": int(n == len(lengths) - 1), "drop": 0}
            for n, length in enumerate(lengths)]
    beats = [sum(v << 32 * k for k, v in enumerate(vector[at:at + LANES]))
             for vector in given.vectors for at in range(0, dimension, LANES)]
    vectors = [{"data": data, "last": int(n == len(beats) - 1)} for n, data in enumerate(beats)]

    async def registers(ctx):
        ctx.set(dut.mean, 1)
        ctx.set(dut.vector_beats, beats_of(dimension))
        ctx.set(dut.vector_packing, packing_of(dimension))

    simulate(powered_up(dut), registers, sender(dut.keys, keys), sender(dut.bags, bags),
             sender(dut.verdicts, [0]), sender(dut.vectors, vectors, stall=stall),
             receiver(dut.o, out, len(reading.out)), limit=2_000)
    assert out == reading.out


def test_an_end_holds_up_what_comes_behind_it():
    """Vectors of the next step are here while the end of the one before is not yet taken."""
    rng = random.Random(1)
    given = packet([2], 16, lambda: (0, rng.randrange(50)), rng, STEP + 1)
    dut, out, ends = made(GradientExpander, preset("tiny")), [], []
    keys = [{"item": {"key": {"row": row, "table": table}, "step": STEP + 1,
                      "end": int(kind == KEY_END), "over": 0}, "last": 0, "drop": 0}
            for table, row, kind in given.records]
    keys[-1]["last"] = 1
    over = {"item": {"key": {"row": 0, "table": 0}, "step": STEP, "end": 0, "over": 1},
            "last": 1, "drop": 0}
    data = sum(v << 32 * k for k, v in enumerate(given.vectors[0]))

    async def late(ctx):
        ctx.set(dut.vector_beats, 1)
        ctx.set(dut.o.ready, 1)
        for _ in range(100):
            assert not ctx.get(dut.o.valid)
            await ctx.tick()
        assert ctx.get(dut.flush.valid) and not ctx.get(dut.idle)
        await receiver(dut.flush, ends, 1)(ctx)
        await receiver(dut.o, out, 2)(ctx)

    simulate(powered_up(dut), late, sender(dut.keys, [over, *keys]),
             sender(dut.bags, [{"item": 2, "last": 1, "drop": 0}]), sender(dut.verdicts, [0]),
             sender(dut.vectors, [{"data": data, "last": 1}]), limit=400)
    assert ends == [STEP]
    assert [beat["data"] for beat in out] == [data] * 2
