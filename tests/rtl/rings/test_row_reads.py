"""Row reads: each lookup becomes one read at the address of its row."""

import random

import pytest

from rtl.formats import LookupRecord, Opcode, RowReadRecord
from rtl.rings import RowReads
from tests.rtl.power_up import powered_up
from tests.support import decoder, made, receiver, sender, simulate

TABLES, BASE = 9, 0x7F_1234_5678_9AB0
BASES = [0, 64, (1 << 43) + 160, 0x1_0000_0000, 0xFFFF_FFF0, 0x7_6543_2100, (1 << 44) - 64,
         (1 << 44) + 64, 1 << 63]
"""The offsets end at 2^44 bytes."""
SIZES = [(1, 2), (1, 1), (1, 0), (3, 0), (4, 0), (11, 0), (15, 0), (16, 0)]
"""Beats of a vector, and log2 of the vectors in one."""


def lookups(count: int, rng: random.Random) -> list[dict]:
    """Return lookups with a landing each, of any rows."""
    return [{"destination": 0, "step": 0, "record": LookupRecord.const({
        "row": rng.choice((rng.randrange(100), rng.getrandbits(33), rng.getrandbits(36))),
        "table": rng.randrange(TABLES), "landing": n & 0xFFFF}).as_value().value}
        for n in range(count)]


async def settle(ctx, dut, *, beats: int = 1, packing: int = 0, enable: int = 1) -> None:
    """Write the registers and the base addresses of tables."""
    ctx.set(dut.enable, enable)
    ctx.set(dut.base, BASE)
    ctx.set(dut.vector_beats, beats)
    ctx.set(dut.vector_packing, packing)
    ctx.set(dut.write_en, 1)
    for table, base in enumerate(BASES):
        # Words of other nodes, and tables that do not exist, have no effect.
        for word, value in ((4, base >> 32), (3, base & 0xFFFF_FFFF), (2, 77), (0, 5)):
            ctx.set(dut.write_table, table)
            ctx.set(dut.write_word, word)
            ctx.set(dut.write_data, value)
            await ctx.tick()
    ctx.set(dut.write_table, TABLES)
    ctx.set(dut.write_word, 3)
    await ctx.tick()
    ctx.set(dut.write_en, 0)
    await ctx.tick()


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("beats, packing", SIZES)
def test_each_row_is_read_where_it_lies(beats, packing, stall):
    dut, reads, total, counted = made(RowReads, TABLES), [], 80, []
    asked = lookups(total, random.Random(beats))

    async def run(ctx):
        await settle(ctx, dut, beats=beats, packing=packing)
        await sender(dut.i, asked, stall=stall)(ctx)
        while len(reads) < total:
            await ctx.tick()
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle) and ctx.get(dut.counters.reads) == total
        counted.append(ctx.get(dut.counters.beyond))

    simulate(powered_up(dut), run, background=[receiver(dut.o, reads, total, stall=stall)])
    length, most, beyond = 64 * beats >> packing, (1 << 40) - 1, 0
    for lookup, read in zip(asked, reads):
        wanted = decoder(LookupRecord)(lookup["record"])
        assert (read["destination"], read["step"]) == (0, 0)
        offset = (BASES[wanted["table"]] + wanted["row"] * length) >> 4
        beyond += offset > most
        assert decoder(RowReadRecord)(read["record"]) == {
            "offset": min(offset, most), "units": length // 16, "tag": wanted["landing"]}
    assert counted == [beyond] and 0 < beyond < total


def header(opcode: int, address: int) -> dict:
    return {"opcode": opcode, "destination": 0, "step": 7, "count": 9, "credit": 4, "empty": 0,
            "final_beat": 0, "address": address, "answers": 0, "status": 0}


@pytest.mark.parametrize("enable", [0, 1])
def test_headers(enable):
    """Headers of reads contain the opcode and the base address; headers of lists pass unchanged."""
    dut, out = made(RowReads, TABLES), []
    given = [header(Opcode.LOOKUP_REQUESTS, 0 if enable else 0x55)] * 3

    async def run(ctx):
        await settle(ctx, dut, enable=enable)
        await sender(dut.headers, given)(ctx)

    simulate(powered_up(dut), run, receiver(dut.header_out, out, 3))
    assert out == ([header(Opcode.READ_ROWS, BASE)] * 3 if enable else given)


def test_off():
    """Lookups pass without delay."""
    dut = made(RowReads, TABLES)

    async def run(ctx):
        await settle(ctx, dut, enable=0)
        for lookup in lookups(10, random.Random(2)):
            ctx.set(dut.i.payload, lookup)
            for ready in (0, 1):
                ctx.set(dut.o.ready, ready)
                for valid in (0, 1):
                    ctx.set(dut.i.valid, valid)
                    assert (ctx.get(dut.i.ready), ctx.get(dut.o.valid)) == (ready, valid)
            assert ctx.get(dut.o.payload.record) == lookup["record"]
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(12)
        assert ctx.get(dut.idle) and not ctx.get(dut.counters.reads)

    simulate(powered_up(dut), run)


def test_latency_and_rate():
    dut, at, total = made(RowReads, TABLES), [], 60

    async def run(ctx):
        await settle(ctx, dut)
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.i.payload, lookups(1, random.Random(3))[0])
        for cycle in range(total + 20):
            ctx.set(dut.i.valid, cycle < total)
            _, _, came, left = await ctx.tick().sample(dut.i.ready, dut.o.valid)
            assert came or cycle >= total
            if left:
                at.append(cycle)

    simulate(powered_up(dut), run)
    assert at == [dut.LATENCY["lookup", "its read"] + n for n in range(total)]


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="tables must be an integer, not True"):
        RowReads(True)
    with pytest.raises(ValueError, match="tables must be between 1 and 4096, not 0"):
        RowReads(0)
