"""StateUnpacker: every record of every beat, in order, and room for all states in flight."""

import random

import pytest

from rtl.formats import StateRecord
from rtl.gradient.state_unpacker import StateUnpacker
from tests.rtl.power_up import powered_up
from tests.support import made, receiver, sender, simulate

STATES = 16
LATENCY = StateUnpacker.LATENCY["beat", "its first record"]


def beats_of(sizes: list[int], rng: random.Random) -> tuple[list[dict], list[dict]]:
    """Return beats with these numbers of records, and the records; bits behind the last record are
    noise."""
    beats, records = [], []
    for size in sizes:
        words = [rng.getrandbits(64) for _ in range(8)]
        records += [StateRecord.from_bits(word) for word in words[:size]]
        beats.append({"data": sum(word << 64 * k for k, word in enumerate(words)),
                      "records": size, "source": rng.getrandbits(8), "step": rng.getrandbits(16),
                      "last": rng.getrandbits(1)})
    return beats, [{name: record[name] for name in StateRecord.members} for record in records]


@pytest.mark.parametrize("stall, gap", [(0.0, 0.0), (0.5, 0.3)])
def test_records_leave_in_order(stall, gap):
    rng, dut, out = random.Random(1), made(StateUnpacker, STATES), []
    beats, records = beats_of([rng.randrange(1, 9) for _ in range(30)] + [8, 8, 1, 1], rng)
    simulate(powered_up(dut), sender(dut.i, beats, stall=gap),
             receiver(dut.o, out, len(records), stall=stall))
    assert out == records


def test_a_record_a_cycle_and_no_beat_waits():
    """Beats of two records, one a cycle, as many as may be on their way."""
    dut, cycles = made(StateUnpacker, STATES), []
    beats, records = beats_of([2] * (STATES // 2), random.Random(2))

    async def feed(ctx):
        for beat in beats:
            ctx.set(dut.i.payload, beat)
            ctx.set(dut.i.valid, 1)
            assert ctx.get(dut.i.ready)
            await ctx.tick()
        ctx.set(dut.i.valid, 0)

    async def watch(ctx):
        ctx.set(dut.o.ready, 1)
        cycle = 0
        while len(cycles) < len(records):
            if ctx.get(dut.o.valid):
                cycles.append(cycle)
            await ctx.tick()
            cycle += 1
        assert ctx.get(dut.idle)

    simulate(powered_up(dut), feed, watch)
    assert cycles == list(range(LATENCY, LATENCY + len(records)))
