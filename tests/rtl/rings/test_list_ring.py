"""List ring: each list in its slot, the index behind it, and no slot that is not consumed."""

import random
from collections import deque

import pytest

from rtl.formats import Opcode
from rtl.rings import ListRing
from tests.rtl.power_up import powered_up
from tests.support import decoder, made, receiver, sender, simulate

BASE, INDEX_AT = 0x7000_0001_0000, 0x7000_0000_0040


def lists_of(rng: random.Random, count: int):
    """Return headers and beats of lists."""
    headers, beats = [], []
    for _ in range(count):
        length = rng.choice((1, 1, 2, rng.randrange(1, 9)))
        headers.append({"opcode": Opcode.LOOKUP_REQUESTS, "destination": 0,
                        "step": rng.getrandbits(16), "count": 8 * length - rng.randrange(8),
                        "credit": rng.getrandbits(16), "empty": 0})
        beats.append([rng.getrandbits(512) for _ in range(length)])
    return headers, beats


class Gpu:
    """GPU memory with a ring, and a kernel that consumes what the index says is there."""

    def __init__(self, rng: random.Random, headers, beats, slots: int, bytes_: int, most: int):
        self.rng, self.headers, self.beats = rng, headers, beats
        self.slots, self.bytes, self.most = slots, bytes_, max(1, most)
        self.came, self.index, self.consumed, self.indexes = 0, 0, 0, 0

    def packet(self, header: dict, beats: list[int]) -> None:
        """Check what is written: the next list, in its slot, or the number of those before."""
        if header["opcode"] == Opcode.INDEX:
            assert header["address"] == INDEX_AT and header["count"] == 1 == len(beats)
            assert header["credit"] == 0x5EED and not header["step"]
            assert beats[0] == self.came & 0xFFFF and 0 < self.came - self.index <= self.most
            self.index, self.indexes = self.came, self.indexes + 1
            return
        assert {k: header[k] for k in self.headers[0]} == self.headers[self.came]
        assert beats == self.beats[self.came]
        assert header["address"] == BASE + self.came % self.slots * self.bytes
        assert self.came - self.consumed < self.slots, "not consumed"
        self.came += 1

    def stores(self, wrong: float) -> int | None:
        """Return a count that the kernel stores: true, old or beyond what it was told of."""
        rng = self.rng
        if rng.random() < wrong:
            return rng.choice((self.consumed - rng.randrange(30000),
                               self.came + self.slots + 3 + rng.randrange(30000)))
        if self.index > self.consumed and rng.random() < 0.2:
            self.consumed = rng.randint(self.consumed + 1, self.index)
            return self.consumed
        return None


@pytest.mark.parametrize("slots, most, gap, stall, wrong", [
    (2, 1, 0.0, 0.0, 0.0), (4, 3, 0.0, 0.3, 0.1), (16, 255, 0.0, 0.0, 0.0),
    (8, 0, 0.4, 0.5, 0.2), (1, 2, 0.2, 0.2, 0.0)])
def test_every_list_in_its_slot_and_then_its_index(slots, most, gap, stall, wrong):
    rng, shift = random.Random(slots + most), 10
    headers, beats = lists_of(rng, 80)
    gpu = Gpu(rng, headers, beats, slots, 1 << shift, most)
    dut, counters, counts = made(ListRing), {}, []

    async def kernel(ctx):
        ctx.set(dut.place.base, BASE)
        ctx.set(dut.place.slot_shift, shift)
        ctx.set(dut.place.ring_shift, slots.bit_length() - 1)
        ctx.set(dut.index_address, INDEX_AT)
        ctx.set(dut.most, most)
        ctx.set(dut.credit, 0x5EED)
        heads, body, bodies = deque(), [], deque()
        stream = random.Random(3)
        while gpu.index < len(headers) or gpu.consumed < gpu.index:
            index = gpu.stores(wrong)
            ctx.set(dut.consumed, {"valid": index is not None, "index": (index or 0) & 0xFFFF})
            for port in (dut.header_out, dut.payload_out):
                ctx.set(port.ready, stream.random() >= stall)
            _, _, head, header, come, beat = await ctx.tick().sample(
                dut.header_out.valid & dut.header_out.ready, dut.header_out.payload,
                dut.payload_out.valid & dut.payload_out.ready, dut.payload_out.payload)
            if head:
                heads.append(decoder(dut.header_out.payload.shape())(header.as_value().value))
            if come:
                body.append(beat.data)
                if beat.last:
                    bodies.append(body)
                    body = []
            while heads and bodies:
                gpu.packet(heads.popleft(), bodies.popleft())
        ctx.set(dut.consumed, {})
        await ctx.tick().repeat(6)
        assert ctx.get(dut.idle) and not (heads or body or bodies)
        counters.update({name: ctx.get(dut.counters[name])
                         for name in dut.counters.shape().members})

    simulate(powered_up(dut), kernel, sender(dut.headers, headers, stall=gap),
             sender(dut.payload, [{"data": beat, "last": k == len(each) - 1}
                                  for each in beats for k, beat in enumerate(each)], stall=gap),
             receiver(dut.lists, counts, len(headers), stall=stall))
    assert counts == [header["count"] for header in headers]
    assert counters["lists"] == 80 and counters["indexes"] == gpu.indexes
    assert (counters["bad_consumed"] > 0) == (wrong > 0)
    if most == 255:
        assert gpu.indexes < 80


def test_a_kernel_that_consumes_nothing():
    """The ring fills up, its index is told, and the rest waits, counted."""
    rng = random.Random(5)
    headers, beats = lists_of(rng, 6)
    dut = made(ListRing)
    seen = []

    async def bench(ctx):
        ctx.set(dut.place.ring_shift, 2)
        ctx.set(dut.most, 200)
        for port in (dut.header_out, dut.payload_out, dut.lists):
            ctx.set(port.ready, 1)
        for _ in range(200):
            _, _, come, opcode, beat, data = await ctx.tick().sample(
                dut.header_out.valid, dut.header_out.payload.opcode, dut.payload_out.valid,
                dut.payload_out.payload.data)
            if come:
                seen.append(opcode)
            if beat and seen[-1] == Opcode.INDEX:
                assert data == 4
        assert not ctx.get(dut.idle) and ctx.get(dut.counters.stall_full) > 100

    simulate(dut, bench, background=[
        sender(dut.headers, headers),
        sender(dut.payload, [{"data": beat, "last": k == len(each) - 1}
                             for each in beats for k, beat in enumerate(each)])])
    assert seen == [Opcode.LOOKUP_REQUESTS] * 4 + [Opcode.INDEX]


def test_latency():
    dut, at = made(ListRing), {}

    async def bench(ctx):
        ctx.set(dut.place.ring_shift, 2)
        for port in (dut.header_out, dut.payload_out, dut.lists):
            ctx.set(port.ready, 1)
        await ctx.tick().repeat(8)
        ctx.set(dut.headers.valid, 1)
        ctx.set(dut.payload.payload, {"data": 77, "last": 1})
        ctx.set(dut.payload.valid, 1)
        for cycle in range(12):
            _, _, head, opcode, beat, data, taken = await ctx.tick().sample(
                dut.header_out.valid, dut.header_out.payload.opcode, dut.payload_out.valid,
                dut.payload_out.payload.data, dut.payload.ready)
            ctx.set(dut.headers.valid, 0)
            if taken:
                ctx.set(dut.payload.valid, 0)
                at.setdefault("taken", cycle)
            if head:
                at["index" if opcode == Opcode.INDEX else "header"] = cycle
            if beat and data == 77:
                at["beat"] = cycle

    simulate(dut, bench)
    assert at["header"] == dut.LATENCY["header", "the same header"]
    assert at["beat"] - at["taken"] == dut.LATENCY["payload beat", "the same beat"]
    assert at["index"] - at["taken"] == dut.LATENCY["last payload beat", "header of its index"]


def test_rate():
    """Packets of four beats leave without a gap but for their headers."""
    dut = made(ListRing)
    head = {"opcode": Opcode.LOOKUP_REQUESTS, "destination": 0, "step": 0, "count": 32,
            "credit": 0, "empty": 0}
    out, counts, beats = [], [], []

    async def kernel(ctx):
        ctx.set(dut.place.ring_shift, 10)
        ctx.set(dut.most, 100)
        ctx.set(dut.payload_out.ready, 1)
        while sum(beats) < 200:
            _, _, come = await ctx.tick().sample(dut.payload_out.valid)
            beats.append(come)

    simulate(dut, kernel, sender(dut.headers, [head] * 50),
             sender(dut.payload, [{"data": k, "last": k % 4 == 3} for k in range(200)]),
             background=[receiver(dut.lists, counts, 50),
                         receiver(dut.header_out, out, 1000)])
    assert len(beats) <= 50 * 5 + 20
