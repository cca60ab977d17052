"""RecordSplit: every record of every beat, with the beat's data, one a cycle."""

import random

import pytest

from rtl.network.record_split import RecordSplit
from tests.support import made, receiver, sender, simulate


def beats_and_records(sizes: list[int], seed: int) -> tuple[list[dict], list[dict]]:
    """Return beats with these numbers of records, and the expected output."""
    rng, beats, records = random.Random(seed), [], []
    for size in sizes:
        words, user = [rng.getrandbits(64) for _ in range(8)], rng.getrandbits(7)
        beats.append({"data": sum(word << 64 * k for k, word in enumerate(words)),
                      "records": size, "user": user})
        records += [{"record": word, "last": int(k == size - 1), "user": user}
                    for k, word in enumerate(words[:size])]
    return beats, records


@pytest.mark.parametrize("stall, gap", [(0.0, 0.3), (0.5, 0.0), (0.3, 0.5)])
def test_records_leave_in_order(stall, gap):
    rng, dut, out = random.Random(1), made(RecordSplit, 7), []
    beats, records = beats_and_records([rng.randrange(1, 9) for _ in range(40)], 2)
    simulate(dut, sender(dut.i, beats, stall=gap), receiver(dut.o, out, len(records), stall=stall))
    assert out == records


def test_latency_and_rate():
    dut, cycles = made(RecordSplit, 7), []
    beats, records = beats_and_records([1, 8, 1, 1, 2], 3)

    async def watch(ctx):
        ctx.set(dut.o.ready, 1)
        assert ctx.get(dut.idle)
        for cycle in range(30):
            if ctx.get(dut.o.valid):
                cycles.append(cycle)
            await ctx.tick()
        assert ctx.get(dut.idle)

    simulate(dut, watch, sender(dut.i, beats))
    first = RecordSplit.LATENCY["beat", "its first record"]
    assert cycles == list(range(first, first + len(records)))
