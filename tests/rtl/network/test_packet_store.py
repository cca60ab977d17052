"""Packet stores: the content of a buffer is read as the beats of a packet, the rest as zero."""

import random
from collections.abc import Callable

import pytest

from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT
from rtl.network.packet_store import RecordStore, VectorStore
from tests.rtl.network.dirty import simulate
from tests.support import made


def store(dut, buffers: int, positions: int, item: str, bits: int,
          beats: Callable[[list[int]], list[tuple[int, int]]], seed: int, **settings) -> None:
    """Fill buffers of ``dut`` item by item, in turn, and read filled ones meanwhile.

    ``beats`` returns the number and the contents of each beat for the items of a buffer.
    """
    rng = random.Random(seed)
    latency = {what: cycles for (what, _), cycles in dut.LATENCY.items()}
    write, read = latency["write"], latency["read"]
    assert read == 1  # packet readers count on it

    async def bench(ctx):
        for name, value in settings.items():
            ctx.set(getattr(dut, name), value)
        held: list[list[int]] = [[] for _ in range(buffers)]
        size = [rng.randrange(1, positions + 1) for _ in range(buffers)]
        whole: dict[int, int] = {}  # full buffers, and the cycle since when
        due, shown, packets = [], None, 0
        for cycle in range(1500):
            buffer = rng.randrange(buffers)
            writes = len(held[buffer]) < size[buffer] and rng.random() < 0.9
            position = len(held[buffer]) if writes else rng.randrange(positions)
            for name, value in (("write", int(writes)), ("buffer", buffer),
                                ("position", position)):
                ctx.set(getattr(dut, name), value)
            value = rng.getrandbits(bits)
            ctx.set(getattr(dut, item), value)
            if writes:
                held[buffer].append(value)
                if len(held[buffer]) == size[buffer]:
                    whole[buffer] = cycle
            ready = [k for k, since in whole.items() if cycle >= since + write]
            if not due and ready:
                source = rng.choice(ready)
                due = [(source, *beat) for beat in beats(held[source])]
            reads = bool(due) and rng.random() < 0.7
            ctx.set(dut.read_en, int(reads))
            ctx.set(dut.read_buffer, due[0][0] if reads else rng.randrange(buffers))
            ctx.set(dut.read_beat, due[0][1] if due else 0)
            if hasattr(dut, "read_units"):
                ctx.set(dut.read_units, len(held[due[0][0]]) if reads else rng.randrange(positions))
            if shown is not None:  # until another is read
                _, number, contents = shown
                assert ctx.get(dut.data) == contents, (cycle, number)
            if reads:
                shown = due[0]
                source = due.pop(0)[0]
                if not due:
                    packets += 1
                    del whole[source]
                    held[source], size[source] = [], rng.randrange(1, positions + 1)
            await ctx.tick()
        assert packets > 20

    simulate(dut, bench)


@pytest.mark.parametrize("buffers, beats, lanes", [(4, 2, 8), (5, 3, 8), (3, 1, 1), (70, 1, 8)])
def test_records_are_read_eight_a_beat(buffers, beats, lanes):
    def packed(records: list[int]) -> list[tuple[int, int]]:
        return [(n, sum(record << RECORD_BITS * k for k, record in enumerate(
            records[RECORDS_PER_BEAT * n:RECORDS_PER_BEAT * (n + 1)])))
            for n in range(-(-len(records) // RECORDS_PER_BEAT))]

    positions = beats * RECORDS_PER_BEAT if lanes == RECORDS_PER_BEAT else lanes
    store(made(RecordStore, buffers, beats, lanes), buffers, positions, "record", RECORD_BITS,
          packed, seed=buffers)


@pytest.mark.parametrize("buffers, positions, first, packing", [
    (4, 6, 0, 0), (3, 7, 2, 0), (5, 7, 1, 1), (4, 13, 0, 2), (2, 5, 3, 2)])
def test_short_vectors_share_beats(buffers, positions, first, packing):
    bits, each = 512 >> packing, 1 << packing

    def packed(vectors: list[int]) -> list[tuple[int, int]]:
        return [(first + n, sum(vector << bits * k for k, vector in enumerate(
            vectors[each * n:each * (n + 1)]))) for n in range(-(-len(vectors) // each))]

    dut = made(VectorStore, buffers, first + positions, positions, first)
    store(dut, buffers, positions, "vector", bits, packed, seed=positions, vector_packing=packing)
