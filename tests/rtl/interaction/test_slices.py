"""SliceLoader: vectors recoded into consecutive places of the ring, and slices announced."""

import random

import numpy as np
import pytest
from amaranth.lib import data

from rtl.config import preset
from rtl.float import RECODED_SLICE
from rtl.interaction.pairs import pair_count
from rtl.interaction.slices import SliceLoader, ring_depth
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate

MOST, LANES = 5, 16


@pytest.mark.few(2)
@pytest.mark.parametrize("itself", [0, 1])
@pytest.mark.parametrize("stall, keep", [(0.0, 1), (0.4, 3), (0.0, 60)])
def test_places_values_and_announcements(itself, stall, keep):
    """``keep``: cycles until a slice is released; the loader waits for the places of the oldest."""
    config = preset("tiny").with_fields(interaction_vectors=MOST, max_dimension=32)
    dut, depth = made(SliceLoader, config), ring_depth(config)
    rng = np.random.default_rng(keep)
    sizes = [1, 5, 3, 2, 5, 5, 1, 4, 5, 2, 5]
    items, values, right = [], [], []
    for number, size in enumerate(sizes):
        right.append({"vectors": size, "pairs": pair_count(size, itself=bool(itself)),
                      "first": number % 2, "final": int(number % 3 == 0)})
        # Surplus vectors are void, the last one of a slice among them.
        surplus = int(number % 4 == 3)
        for k in range(size + surplus):
            # Powers of two, whose recoded exponents are known.
            lanes = rng.integers(1, 255, LANES)
            beat = sum(int(field) << 23 + 32 * lane for lane, field in enumerate(lanes))
            items.append({"data": beat, "void": int(k >= size),
                          "last": int(k + 1 == size + surplus), "first": number % 2,
                          "final": int(number % 3 == 0)})
            if k < size:
                values.append([int(field) - 64 for field in lanes])
    announced, written, levels = [], [], []

    async def take(ctx):
        await receiver(dut.slices, announced, len(sizes))(ctx)

    async def watch(ctx):
        ctx.set(dut.itself, itself)
        level, seen, later, cycle, address = 0, 0, [], 0, None
        order = random.Random(keep)
        while seen < len(sizes) or later or not ctx.get(dut.idle):
            due = later and later[0][0] <= cycle
            released = later.pop(0)[1] if due else 0
            ctx.set(dut.released, released)
            if address is not None:
                word = data.Const(RECODED_SLICE, ctx.get(dut.write_data))
                written.append((address, [word[lane].exponent for lane in range(LANES)]))
                level += 1
            address = ctx.get(dut.write_addr) if ctx.get(dut.write_en) else None
            levels.append(level)
            level -= released
            while seen < len(announced):
                later.append((cycle + order.randint(1, keep), announced[seen]["vectors"]))
                seen += 1
            await ctx.tick()
            cycle += 1

    simulate(powered_up(dut, keep), sender(dut.i, items, stall=stall), take, watch)
    assert announced == right
    assert written == [(k % depth, exponents) for k, exponents in enumerate(values)]
    assert max(levels) <= depth
    if keep == 60:
        assert max(levels) == depth
