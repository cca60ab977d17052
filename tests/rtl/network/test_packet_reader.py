"""Packet reader: headers and beats of each packet, in order, and its buffer back once read."""

import random

import pytest

from rtl.formats import Opcode
from rtl.network.packet_reader import PacketReader
from tests.rtl.network.packing import answer_credit, credit_of
from tests.support import made, quiet_while_idle, receiver, sender, simulate

BUFFERS, UNITS, BEATS, BITS = 6, 24, 3, 512
HEADER, FIRST = (PacketReader.LATENCY["packet", name] for name in ("its header", "its first beat"))


def reader(bits: int = BITS, sized: bool = False) -> PacketReader:
    return made(PacketReader, Opcode.LOOKUPS, BUFFERS, UNITS, BEATS, bits=bits, sized=sized)


def packets_of(count: int, seed: int, beats: int | None = None) -> list[dict]:
    """Return packets; six consecutive packets use distinct buffers."""
    rng = random.Random(seed)
    return [{"destination": rng.randrange(256), "step": rng.getrandbits(16), "buffer": n % BUFFERS,
             "units": rng.randrange(1, UNITS + 1), "beats": beats or rng.randrange(1, BEATS + 1)}
            for n in range(count)]


def word(buffer: int, units: int, index: int) -> int:
    """Return the beat of a store, with only its low bits in use."""
    return random.Random(buffer * 10007 + units * 101 + index).getrandbits(BITS)


def store(dut, freed: list):
    """Model the RAM, of latency 1: keep the last read, form its beat; record freed buffers."""
    async def bench(ctx):
        read = None
        while True:
            if read is not None:
                beat = ctx.get(dut.beat)
                assert (beat.buffer, beat.index) == read
                ctx.set(dut.data, word(*read[:1], beat.units, beat.index))
            if ctx.get(dut.read_en):
                read = ctx.get(dut.read_buffer), ctx.get(dut.read_beat)
            event = ctx.get(dut.freed)
            if event.valid:
                assert ctx.get(dut.read_en) and read is not None and read[0] == event.buffer
                freed.append((event.buffer, read[1]))
            await ctx.tick()
    return bench


def run(dut, packets, *, idle=0.0, stalls=(0.0, 0.0), bits=BITS) -> int:
    headers, payload, freed = [], [], []
    beats = sum(packet["beats"] for packet in packets)

    async def finish(ctx):
        while len(payload) < beats or not ctx.get(dut.idle):
            await ctx.tick()
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle)

    cycles = simulate(
        dut, sender(dut.i, packets, stall=idle, seed=7), finish,
        receiver(dut.headers, headers, len(packets), stall=stalls[0], seed=8),
        receiver(dut.payload, payload, beats, stall=stalls[1], seed=9),
        background=[store(dut, freed), answer_credit(dut), quiet_while_idle(
            dut.idle, [dut.i.valid], [dut.headers.valid, dut.payload.valid, dut.freed.valid])],
        limit=20_000)
    assert headers == [
        {"opcode": Opcode.LOOKUPS, "destination": p["destination"], "step": p["step"],
         "count": p["units"], "credit": credit_of(p["destination"]), "empty": 0,
         "final_beat": p.get("final_beat", 0)} for p in packets]
    assert payload == [
        {"data": word(p["buffer"], p["units"], k) & (1 << bits) - 1,
         "last": int(k == p["beats"] - 1)} for p in packets for k in range(p["beats"])]
    assert freed == [(p["buffer"], p["beats"] - 1) for p in packets]
    return cycles


@pytest.mark.parametrize("idle, stalls, bits", [
    (0.0, (0.0, 0.0), BITS), (0.5, (0.3, 0.3), 130), (0.0, (0.0, 0.7), BITS),
    (0.0, (0.8, 0.0), BITS), (0.9, (0.0, 0.5), 64)])
def test_packets_leave_whole_and_in_order(idle, stalls, bits):
    run(reader(bits), packets_of(80, seed=bits), idle=idle, stalls=stalls, bits=bits)


def test_packets_with_a_size_of_vectors_in_their_header():
    run(reader(sized=True), [packet | {"final_beat": number % 16}
                             for number, packet in enumerate(packets_of(40, seed=3))])


@pytest.mark.parametrize("beats", [1, 3])
def test_packets_back_to_back(beats):
    count = 40
    cycles = run(reader(), packets_of(count, 1, beats))
    assert cycles <= count * beats + FIRST + 6


def test_latency():
    dut, packet = reader(), packets_of(1, 2)[0]
    seen = {}

    async def bench(ctx):
        await ctx.tick().repeat(2)
        ctx.set(dut.i.payload, packet)
        ctx.set(dut.i.valid, 1)
        for cycle in range(10):
            for name in ("headers", "payload"):
                if ctx.get(getattr(dut, name).valid):
                    seen.setdefault(name, cycle)
            await ctx.tick()
            ctx.set(dut.i.valid, 0)

    simulate(dut, bench, background=[store(dut, [])])
    assert seen == {"headers": HEADER, "payload": FIRST}
