"""Lookups of peers, against a plain table of owners."""

import random

import pytest

from rtl.network.lookup_check import LookupCheck
from tests.support import made, receiver, sender, simulate

OWNERS = {0: (1, 100), 1: (0, 100), 3: (1, 5)}
"""Table: owner and rows; table 2 has no descriptor."""


def _loader(dut, node: int):
    async def bench(ctx):
        ctx.set(dut.node, node)
        ctx.set(dut.nodes, 4)
        await ctx.tick().until(dut.write_ready)
        for table, (owner, rows) in OWNERS.items():
            for word, value in ((1, rows), (2, 0), (0, 1 | owner << 8 | 1 << 16)):
                ctx.set(dut.write_table, table)
                ctx.set(dut.write_word, word)
                ctx.set(dut.write_data, value)
                ctx.set(dut.write_en, 1)
                await ctx.tick()
        ctx.set(dut.write_en, 0)
        for _ in range(4):
            await ctx.tick()
    return bench


@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.3, 0.5)])
def test_only_owned_rows_pass(stalls):
    rng = random.Random(9)
    dut = made(LookupCheck, 8)
    items, expected, freed = [], [], []
    counts = {"bad_table": 0, "bad_row": 0, "bad_owner": 0}
    for beat in range(60):
        source = rng.randrange(4)
        length = rng.randrange(1, 9)
        for k in range(length):
            table, row = rng.choice([0, 0, 0, 0, 3, 1, 2, 7]), rng.randrange(0, 8)
            request = {"key": {"row": row, "table": table}, "landing": beat * 8 + k,
                       "node": source, "step": beat}
            items.append({"request": request, "beat_last": int(k == length - 1)})
            owner, rows = OWNERS.get(table, (None, 0))
            if owner is None:
                counts["bad_table"] += 1
            elif row >= rows:
                counts["bad_row"] += 1
            elif owner != 1:
                counts["bad_owner"] += 1
            else:
                expected.append(request)
        # A peer gets its credit back for any lookups.
        freed.append(source)
    taken: list[dict] = []
    events: list[int] = []
    load = _loader(dut, 1)

    async def produce(ctx):
        await load(ctx)
        await sender(dut.i, items, stall=stalls[0])(ctx)
        for _ in range(40):
            await ctx.tick()
        for name, value in counts.items():
            assert ctx.get(dut.counters[name]) == value, name
        assert ctx.get(dut.counters.requests) == len(expected)
        assert ctx.get(dut.idle)

    async def watch(ctx):
        async for _, _, event in ctx.tick().sample(dut.freed):
            if event.valid:
                events.append(event.node)

    simulate(dut, produce, receiver(dut.o, taken, len(expected), stall=stalls[1]),
             background=[watch])
    assert taken == expected
    assert events == freed
