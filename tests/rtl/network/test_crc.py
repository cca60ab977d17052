"""CRC-32C against google_crc32c."""

import random

import google_crc32c

from rtl.network.crc import Crc32c
from tests.support import made, simulate


def test_packets_with_gaps():
    rng, dut = random.Random(1), made(Crc32c)
    packets = [[rng.randbytes(64) for _ in range(rng.randrange(1, 6))] for _ in range(40)]
    packets += [[bytes(64)], [b"\xff" * 64] * 2]

    async def bench(ctx):
        for packet in packets:
            for k, beat in enumerate(packet):
                while rng.random() < 0.3:
                    await ctx.tick()
                ctx.set(dut.valid, 1)
                ctx.set(dut.first, k == 0)
                ctx.set(dut.data, int.from_bytes(beat, "little"))
                await ctx.tick()
                ctx.set(dut.valid, 0)
            assert not ctx.get(dut.idle)
            await ctx.tick()
            assert ctx.get(dut.idle)
            assert ctx.get(dut.crc) == google_crc32c.value(b"".join(packet))

    simulate(dut, bench)


def test_one_beat_a_cycle():
    """The CRC of every prefix appears two cycles after its beat, beats back to back."""
    rng, dut, seen = random.Random(2), made(Crc32c), []
    beats = [rng.randbytes(64) for _ in range(50)]

    async def bench(ctx):
        ctx.set(dut.valid, 1)
        for k, beat in enumerate(beats):
            ctx.set(dut.first, k == 0)
            ctx.set(dut.data, int.from_bytes(beat, "little"))
            await ctx.tick()
            seen.append(ctx.get(dut.crc))

    simulate(dut, bench)
    assert seen[1:] == [google_crc32c.value(b"".join(beats[:k + 1])) for k in range(49)]
