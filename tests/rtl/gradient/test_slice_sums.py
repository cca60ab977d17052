"""Sums over slices: order, gaps, and the promised latency."""

import random

import numpy as np
import pytest

from rtl.gradient.slice_sums import SliceSums, slice_sums_latency
from tests.rtl.power_up import powered_up
from tests.support import made, simulate


def sums_of(rows):
    total = rows[:, 0]
    for k in range(1, rows.shape[1]):
        total = total + rows[:, k]
    return total.view(np.uint32).tolist()


def run(slices, n, rows, gaps):
    """Send ``rows`` of ``n`` slices, with a gap before a slice as ``gaps()`` says."""
    dut = made(SliceSums, slices)
    terms = np.random.default_rng(n).standard_normal((rows, n)).astype(np.float32)
    found, begun, latencies = [], [], []

    async def feed(ctx):
        cycle = 0

        async def tick():
            nonlocal cycle
            _, _, valid, value = await ctx.tick().sample(dut.o_valid, dut.o)
            if valid:
                latencies.append(cycle - begun[len(found)])
                found.append(value)
            cycle += 1

        for row in terms.view(np.uint32).tolist():
            begun.append(None)
            for k, term in enumerate(row):
                for _ in range(gaps(k)):
                    await tick()
                if k == 0:
                    begun[-1] = cycle
                ctx.set(dut.valid, 1)
                ctx.set(dut.term, term)
                ctx.set(dut.last, k == n - 1)
                await tick()
                ctx.set(dut.valid, 0)
        for _ in range(slice_sums_latency(n)):
            await tick()
        assert ctx.get(dut.idle)

    simulate(powered_up(dut), feed)
    assert found == sums_of(terms)
    return latencies


@pytest.mark.parametrize("slices, n", [(2, 1), (2, 2), (3, 3), (4, 4), (16, 5), (16, 16)])
def test_sums_in_order_at_one_slice_a_cycle(slices, n):
    latencies = run(slices, n, 50, lambda k: 0)
    assert max(latencies) <= slice_sums_latency(n)


@pytest.mark.parametrize("n", [1, 4, 16])
def test_gaps_of_all_kinds(n):
    rng = random.Random(n)
    run(16, n, 60, lambda k: rng.choice((0,) * 12 + (1, 2, 3, 7, 9, 60)))
    # Gaps between rows only: latencies are as without.
    latencies = run(16, n, 30, lambda k: 0 if k else rng.randrange(12))
    assert max(latencies) <= slice_sums_latency(n)


def test_parameters_are_checked():
    with pytest.raises(TypeError, match="slices must be an integer, not '4'"):
        SliceSums("4")
    with pytest.raises(ValueError, match="slices must be at least 2, not 1"):
        SliceSums(1)
