"""ExactTable: any entries one after the other, at one operation per cycle."""

import numpy as np
import pytest

from gen.ram_cost import ram_cost
from rtl.float.exact import EXACT_SEGMENTS, segment_slice
from rtl.float.exact_table import ExactTable
from tests.rtl.float.exact_cases import PATTERNS, Script, exact_word, random_script
from tests.rtl.power_up import powered_up
from tests.support import sender, simulate

ENTRIES = 7
LATENCY = 12
SMALL = ["gaussian", "any_finite", "cancelling", "edges", "zeros", "any"]


def check(script: Script, *, stall=0.0, offer_stall=0.0, seed=0) -> int:
    """Compare the sums that come out with the script's; return the cycles it took."""
    lanes = script.data.shape[1]
    dut, taken = ExactTable(ENTRIES, 16, lanes=lanes), []
    dut_sums = dut.sums

    async def take(ctx):
        rng = np.random.default_rng(seed + 1)
        while len(taken) < len(script.taken):
            ctx.set(dut_sums.ready, int(rng.random() >= stall))
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
    expected = [(meta, sum(exact_word(total) << 301 * lane for lane, total in enumerate(sums)))
                for meta, sums in script.taken]
    assert taken == expected
    return cycles


@pytest.mark.parametrize("pattern", PATTERNS)
def test_any_order_of_entries(pattern):
    script = random_script(250, ENTRIES, pattern, SMALL, 1, len(pattern))
    assert len(script.taken) > 10
    # The sink is always ready: one operation per cycle.
    assert check(script, seed=3) <= len(script.entry) + LATENCY + 4


@pytest.mark.parametrize("pattern", ["same", "every_third", "few", "uniform"])
def test_stalls(pattern):
    check(random_script(200, ENTRIES, pattern, SMALL, 1, 5), stall=0.4, offer_stall=0.4, seed=5)


def test_everything_is_taken_while_nothing_is_given_out():
    """The table stops taking operations before the queue overflows."""
    entry = np.zeros(60, int)
    ones, none = np.ones(60, int), np.zeros(60, int)
    first, take = none.copy(), ones.copy()
    first[0], take[0] = 1, 0
    data = np.arange(60, dtype=np.uint32)[:, None]
    check(Script(entry, data, ones, first, take, np.arange(60)), stall=0.9, seed=2)


def test_lanes_do_not_touch_each_other():
    script = random_script(60, ENTRIES, "few", ["infinite", "any", "gaussian"], 3, 1)
    check(script)


def test_latency():
    dut = ExactTable(ENTRIES, 16, lanes=1)
    operation = {"entry": 1, "data": 0x3F800000, "meta": 7, "add": 1, "first": 1, "take": 0}

    async def bench(ctx):
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.i.payload, operation)
        await ctx.tick()
        ctx.set(dut.i.payload, operation | {"first": 0, "take": 1, "add": 0})
        await ctx.tick()
        ctx.set(dut.i.valid, 0)
        waited = 1
        while not ctx.get(dut.sums.valid):
            await ctx.tick()
            waited += 1
        assert waited == LATENCY

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
])
def test_arguments(arguments, said):
    with pytest.raises(ValueError, match=said):
        ExactTable(meta_shape=16, **arguments)
