"""ExactTable: any sequence of entries, at one operation per cycle."""

import numpy as np
import pytest

from gen.netlist.ram_cost import ram_cost
from rtl.float.exact import EXACT_SEGMENTS, segment_slice
from rtl.float.exact_table import ExactTable
from tests.rtl.float.exact_cases import PATTERNS, Script, exact_word, random_script
from tests.rtl.power_up import powered_up
from tests.support import made, sender, simulate

ENTRIES = 7
LATENCY = ExactTable.LATENCY["taking operation behind a term", "sums"]
"""Behind a term."""
SMALL = ["gaussian", "any_finite", "cancelling", "edges", "zeros", "any"]


def check(script: Script, *, stall=0.0, offer_stall=0.0, seed=0, units=None) -> int:
    """Compare the output sums with the script's; return the number of cycles."""
    lanes = script.data.shape[1]
    units = units or lanes
    dut, taken = made(ExactTable, ENTRIES, 16, lanes=lanes, units=units), []
    dut_sums = dut.sums

    async def take(ctx):
        rng = np.random.default_rng(seed + 1)
        while len(taken) < len(script.taken) * lanes // units:
            # Whole sums are taken.
            ctx.set(dut_sums.ready, int(len(taken) * units % lanes > 0 or rng.random() >= stall))
            *_, words, meta, valid, ready = await ctx.tick().sample(
                dut_sums.payload.lanes.as_value(), dut_sums.payload.meta, dut_sums.valid,
                dut_sums.ready)
            if valid and ready:
                taken.append((meta, words))
        ctx.set(dut_sums.ready, 0)
        await ctx.tick().repeat(2)
        assert ctx.get(dut.idle)

    cycles = simulate(
        powered_up(dut, seed), sender(dut.i, script.items(), stall=offer_stall, seed=seed), take,
        limit=3000)
    expected = [(meta, sum(exact_word(total) << 301 * lane
                           for lane, total in enumerate(sums[part:part + units])))
                for meta, sums in script.taken for part in range(0, lanes, units)]
    assert taken == expected
    return cycles


@pytest.mark.few(4)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_any_order_of_entries(pattern):
    script = random_script(250, ENTRIES, pattern, SMALL, 1, len(pattern), take=0.04)
    assert len(script.taken) >= 5
    # One term per cycle; sums taken in between wait for the earlier ones.
    assert check(script, seed=3) <= len(script.items()) + len(script.taken) * (LATENCY + 1)


@pytest.mark.parametrize("pattern", ["same", "every_third", "few", "uniform"])
def test_stalls(pattern):
    check(random_script(120, ENTRIES, pattern, SMALL, 1, 5), stall=0.4, offer_stall=0.4, seed=5)


@pytest.mark.few(2)
@pytest.mark.parametrize("units", [1, 4])
@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_sums_leave_in_parts(units, stall):
    """As fast as they can, sum after sum; then terms again."""
    data = np.random.default_rng(1).integers(0, 1 << 32, (60, 4), dtype=np.uint32)
    first, take = np.zeros(60, int), np.zeros(60, int)
    entry = np.concatenate([np.arange(30) % 6, np.arange(30) % 6])
    add = (np.arange(60) % 30 < 24).astype(int)
    first[np.arange(60) % 30 < 6] = 1
    take[np.arange(60) % 30 >= 24] = 1
    script = Script(entry, data, add, first, take, np.arange(60))
    cycles = check(script, stall=stall, units=units, seed=1)
    if not stall:
        assert cycles <= 2 * (24 + LATENCY + 6 * 4 // units) + 6


def test_lanes_do_not_touch_each_other():
    script = random_script(60, ENTRIES, "few", ["infinite", "any", "gaussian"], 3, 1)
    check(script)


def test_latency():
    dut = made(ExactTable, ENTRIES, 16, lanes=1)
    operation = {"entry": 1, "data": 0x3F800000, "meta": 7, "first": 1, "take": 0}

    async def bench(ctx):
        ctx.set(dut.sums.ready, 1)
        for wait, latency in ((0, LATENCY), (20, 1)):
            await sender(dut.i, [operation])(ctx)
            if wait:
                await ctx.tick().repeat(wait)
            ctx.set(dut.i.payload, operation | {"first": 0, "take": 1})
            ctx.set(dut.i.valid, 1)
            waited = 0
            while not ctx.get(dut.sums.valid):
                assert ctx.get(dut.idle) == (waited == latency - 1)
                if ctx.get(dut.i.ready):
                    await ctx.tick()
                    ctx.set(dut.i.valid, 0)
                else:
                    await ctx.tick()
                waited += 1
            assert waited == latency
            await ctx.tick()

    simulate(dut, bench)


def test_memory_is_67_columns():
    words = [16 * (s.stop - s.start) for s in map(segment_slice, range(EXACT_SEGMENTS))]
    assert sum(words) == 4816
    assert sum(ram_cost(bits, 512, "block").bram36 for bits in words) == 67
    assert sum(ram_cost(bits, 4096, "ultra").uram for bits in words) == 67


@pytest.mark.parametrize("arguments, said", [
    ({"entries": 1}, "entries must be an integer of at least 2, not 1"),
    ({"entries": True}, "entries must be an integer of at least 2, not True"),
    ({"entries": 8, "lanes": 17}, "lanes must be an integer between 1 and 16, not 17"),
    ({"entries": 8, "lanes": 0}, "lanes must be an integer between 1 and 16, not 0"),
    ({"entries": 8, "lanes": 4, "units": 3}, r"units must be lanes \(4\) divided by 1, 2"),
    ({"entries": 8, "lanes": 1, "units": True}, "units must be lanes .* not True"),
])
def test_arguments(arguments, said):
    with pytest.raises(ValueError, match=said):
        ExactTable(meta_shape=16, **arguments)
