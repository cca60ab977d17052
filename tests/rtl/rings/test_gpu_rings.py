"""GPU rings: the vectors of a list are read from the slot of its number, or sent by the host."""

import random

import pytest

from rtl.formats import HeaderBeat, IndexRecord, Opcode, ReadRecord
from rtl.rings import GpuRings
from tests.rtl.power_up import powered_up
from tests.support import counts_of, decoder, made, receiver, sender, simulate

LISTS, VECTORS, TOLD, FREED = 0x1_0000_0000, 0x2_0000_0000, 0x1_0000_4000, 0x2_0000_4000
LIST_SHIFT, VECTOR_SHIFT, SLOTS = 11, 12, 4


def packet_of(opcode: int, count: int, body: list[int], tag: int = 0) -> list[dict]:
    """Return the beats of a packet."""
    head = HeaderBeat.const({"ember": {"version": 1, "opcode": opcode, "count": count,
                                       "acknowledge": tag}}).as_value().value
    return [{"item": beat, "last": k == len(body)} for k, beat in enumerate([head, *body])]


def list_of(count: int) -> dict:
    """Return the header of a list."""
    return {"opcode": Opcode.LOOKUP_REQUESTS, "destination": 0, "step": 3, "count": count,
            "credit": 9, "empty": 0, "final_beat": 0}


def place(ctx, dut) -> None:
    """Set the registers of the rings."""
    ctx.set(dut.vector_beats, 1)
    ctx.set(dut.credit, 0x77)
    ctx.set(dut.every, 1)
    for ring, base, told, shift in ((dut.list_place, LISTS, TOLD, LIST_SHIFT),
                                    (dut.vector_place, VECTORS, FREED, VECTOR_SHIFT)):
        ctx.set(ring.ring.base, base)
        ctx.set(ring.index_address, told)
        ctx.set(ring.ring.slot_shift, shift)
        ctx.set(ring.ring.ring_shift, SLOTS.bit_length() - 1)


class Gpu:
    """A kernel, and the memory from which its vectors are read."""

    def __init__(self, lists: int):
        self.lists, self.known, self.filled, self.emptied = lists, 0, 0, 0
        self.asked: list[int] = []

    def take(self, header: dict, beat: int) -> None:
        """Take a READ or INDEX packet and check its count."""
        assert header["count"] == 1 and header["credit"] == 0x77 and not header["answers"]
        if header["opcode"] == Opcode.READ:
            record = decoder(ReadRecord)(beat)
            number = len(self.asked)
            assert record["tag"] == number < self.filled
            assert header["address"] == VECTORS + (number % SLOTS << VECTOR_SHIFT)
            assert record["bytes"] == 64 * (1 + number + 1)
            self.asked.append(number)
            return
        assert header["opcode"] == Opcode.INDEX
        index = decoder(IndexRecord)(beat)["index"]
        if header["address"] == TOLD:
            assert self.known < index <= self.lists
            self.known = index
        else:
            assert header["address"] == FREED and self.emptied < index <= len(self.asked)
            self.emptied = index


@pytest.mark.parametrize("stall", [0.0, 0.3])
def test_each_list_is_answered_from_its_slot(stall):
    """The kernel writes its counts of lists read and slots filled to registers, and never waits in
    vain."""
    total = 14
    dut, gpu, heads, out = made(GpuRings), Gpu(total), [], []

    async def run(ctx):
        rng = random.Random(4)
        ctx.set(dut.enable, 1)
        place(ctx, dut)
        headers, beats, sent, offered = [], [], 0, []
        while len(out) < sum(n + 3 for n in range(total)) or gpu.emptied < total:
            gpu.filled = min(gpu.known, gpu.emptied + SLOTS)
            ctx.set(dut.consumed, gpu.known)
            ctx.set(dut.produced, gpu.filled)
            if not offered and sent < len(gpu.asked):
                body = [100 * sent + k for k in range(sent + 2)]
                offered = packet_of(Opcode.READ_DATA, 8 * len(body), body, sent)
                sent += 1
            ctx.set(dut.i.valid, bool(offered))
            ctx.set(dut.read, 1)
            if offered:
                ctx.set(dut.i.payload, offered[0])
            for port in (dut.headers, dut.payload):
                ctx.set(port.ready, rng.random() >= stall)
            _, _, taken, head, header, come, beat = await ctx.tick().sample(
                dut.i.valid & dut.i.ready, dut.headers.valid & dut.headers.ready,
                dut.headers.payload, dut.payload.valid & dut.payload.ready,
                dut.payload.payload.data)
            offered = offered[taken:]
            if head:
                headers.append(decoder(dut.headers.payload.shape())(header.as_value().value))
            if come:
                beats.append(beat)
            if headers and beats:
                gpu.take(headers.pop(0), beats.pop(0))
        ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(12)
        assert ctx.get(dut.idle)
        counts = counts_of(ctx, dut.counters)
        assert counts["lists"] == counts["reads"] == counts["slots"] == total
        assert not any(counts[name] for name in counts if name.startswith(("bad", "short", "rep")))

    async def later(ctx):
        await ctx.tick().repeat(6)
        await sender(dut.lists, [list_of(n + 1) for n in range(total)], stall=stall)(ctx)

    simulate(powered_up(dut), run, later, background=[
        receiver(dut.list_headers, heads, total, stall=stall),
        receiver(dut.o, out, sum(n + 3 for n in range(total)), stall=stall)])
    assert [head["address"] for head in heads] == [
        LISTS + (n % SLOTS << LIST_SHIFT) for n in range(total)]
    assert out == [beat for n in range(total) for beat in packet_of(
        Opcode.GPU_VECTORS, n + 1, [100 * n + k for k in range(n + 2)], n)]


def test_off():
    """Lists go to the host, packets pass without delay, and counts have no effect."""
    dut, heads, out = made(GpuRings), [], []
    packets = [beat for n in range(4) for beat in packet_of(Opcode.GPU_VECTORS, n + 1, [n, n + 1])]

    async def run(ctx):
        place(ctx, dut)
        ctx.set(dut.headers.ready, 1)
        ctx.set(dut.payload.ready, 1)
        await ctx.tick().repeat(2)
        ctx.set(dut.consumed, 3)
        ctx.set(dut.produced, 3)
        for _ in range(30):
            _, _, told = await ctx.tick().sample(dut.headers.valid)
            assert not told
        assert ctx.get(dut.idle)
        assert ctx.get(dut.counters.bad_consumed) == ctx.get(dut.counters.bad_index) == 1

    simulate(powered_up(dut), run, sender(dut.lists, [list_of(5)] * 3), sender(dut.i, packets),
             receiver(dut.list_headers, heads, 3), receiver(dut.o, out, len(packets)))
    assert [head["address"] for head in heads] == [0] * 3 and out == packets
