"""Gradient expander by itself: more bags than it has room for, vectors that come slowly."""

import random

import pytest

from rtl.config import LANES, beats_of, packing_of, preset
from rtl.gradient import GradientExpander
from tests.rtl.descriptors import Table
from tests.rtl.gradient.packets import KEY_END, Reading, packet
from tests.rtl.power_up import powered_up
from tests.support import receiver, sender, simulate

STEP = 7


@pytest.mark.parametrize("dimension, lengths, stall", [
    (16, [100, *[1] * 120], 0.0), (48, [1, 2, *[1] * 20, 40, *[1] * 30], 0.5)])
def test_vectors_wait_for_the_keys_of_a_long_bag(dimension, lengths, stall):
    rng = random.Random(dimension)
    given = packet(lengths, dimension, lambda: (0, rng.randrange(50)), rng, STEP)
    reading = Reading({0: Table(rows=50, owner=2)}, 0, 6, STEP, dimension, True)
    reading.read(given)
    dut, out = GradientExpander(preset("tiny")), []
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
