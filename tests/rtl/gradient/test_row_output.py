"""RowOutput: each beat goes to the host and to its slot, each state once; then the place is free.
"""

import random

import pytest

from rtl.config import preset
from rtl.gradient.row_output import RowOutput
from tests.support import made, receiver, sender, simulate

CONFIG = preset("tiny").with_fields(max_dimension=32, local_cache_rows=24, update_rows=8)
STEP = 77
PORTS = "write", "rows", "states"


@pytest.mark.parametrize("adagrad, stall, gap", [(1, 0.0, 0.0), (0, 0.4, 0.2), (1, 0.6, 0.0)])
def test_rows_and_states_leave(adagrad, stall, gap):
    rng, dut = random.Random(adagrad), made(RowOutput, CONFIG)
    places = [{"key": {"row": rng.getrandbits(36), "table": rng.getrandbits(12)},
               "slot": rng.randrange(24), "held": rng.getrandbits(1)} for _ in range(8)]
    items, freed, read = [], [], []
    want: dict[str, list] = {name: [] for name in PORTS}
    taken: dict[str, list] = {name: [] for name in PORTS}
    for number in range(0xFFF0, 0x10010):
        number &= 0xFFFF
        place, state, count = places[number % 8], rng.getrandbits(32), rng.randrange(1, 3)
        for beat in range(count):
            row = rng.getrandbits(512)
            items.append({"row": row, "state": state, "id": number, "last": beat == count - 1})
            if place["held"]:
                want["write"].append({"slot": place["slot"], "beat": beat, "data": row})
            want["rows"].append({
                "destination": 0, "step": STEP, "data": row,
                "record": {**place["key"], "beat": beat, "level": 0, "reserved": 0}})
        if adagrad:
            want["states"].append(
                {"destination": 0, "step": STEP, "record": state | number << 32})

    async def ring(ctx):
        """Answer a read in the next cycle, and hold the answer."""
        ctx.set(dut.step, STEP)
        ctx.set(dut.adagrad, adagrad)
        async for _, _, reads, place, frees in ctx.tick().sample(
                dut.read_en, dut.read_place, dut.freed):
            if frees:
                freed.append(read[-1])
            if reads:
                read.append(place)
                for name in ("key", "slot", "held"):
                    ctx.set(getattr(dut, name), places[place][name])

    async def rest(ctx):
        while any(len(taken[name]) < len(want[name]) for name in PORTS) or not ctx.get(dut.idle):
            await ctx.tick()
        assert ctx.get(dut.sent) == len(want["rows"]) + len(want["states"])

    simulate(dut, sender(dut.i, items, stall=gap), rest, background=[
        ring, *(receiver(getattr(dut, name), taken[name], 1 << 30, stall=stall, seed=seed)
                for seed, name in enumerate(PORTS))])
    assert taken == want
    assert freed == [number % 8 for number in range(32)]
