"""List ring: each list in its slot, the index behind it, and no slot that is not consumed."""

import random
from itertools import pairwise

import pytest

from rtl.formats import Opcode
from rtl.rings import ListRing
from tests.rtl.power_up import powered_up
from tests.support import decoder, made, receiver, sender, simulate

BASE, INDEX_AT = 0x7000_0001_0000, 0x7000_0000_0040


def lists_of(rng: random.Random, count: int):
    """Return headers of lists."""
    return [{"opcode": Opcode.LOOKUP_REQUESTS, "destination": 0, "step": rng.getrandbits(16),
             "count": rng.randrange(1, 177), "credit": rng.getrandbits(16), "empty": 0}
            for _ in range(count)]


class Gpu:
    """GPU memory with a ring, and a kernel that consumes what the index says is there."""

    def __init__(self, rng: random.Random, headers, slots: int, bytes_: int, most: int):
        self.rng, self.headers = rng, headers
        self.slots, self.bytes, self.most = slots, bytes_, max(1, most)
        self.came, self.index, self.consumed, self.indexes = 0, 0, 0, 0

    def list(self, header: dict) -> None:
        """Check a header: that of the next list, in its slot."""
        assert {k: header[k] for k in self.headers[0]} == self.headers[self.came]
        assert header["address"] == BASE + self.came % self.slots * self.bytes
        assert self.came - self.consumed < self.slots, "not consumed"
        self.came += 1

    def told(self, packet: dict) -> None:
        """Check an index: the number of some lists that have left."""
        assert packet["address"] == INDEX_AT and packet["opcode"] == Opcode.INDEX
        ahead = (packet["record"] - self.index) & 0xFFFF
        assert 0 < ahead <= min(self.most, self.came - self.index)
        self.index, self.indexes = self.index + ahead, self.indexes + 1

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
    headers = lists_of(rng, 80)
    gpu = Gpu(rng, headers, slots, 1 << shift, most)
    dut, counters, counts = made(ListRing), {}, []

    async def kernel(ctx):
        ctx.set(dut.enable, 1)
        ctx.set(dut.place.base, BASE)
        ctx.set(dut.place.slot_shift, shift)
        ctx.set(dut.place.ring_shift, slots.bit_length() - 1)
        ctx.set(dut.index_address, INDEX_AT)
        ctx.set(dut.most, most)
        stream = random.Random(3)
        while gpu.index < len(headers) or gpu.consumed < gpu.index:
            index = gpu.stores(wrong)
            ctx.set(dut.consumed, {"valid": index is not None, "index": (index or 0) & 0xFFFF})
            for port in (dut.header_out, dut.indexes):
                ctx.set(port.ready, stream.random() >= stall)
            _, _, head, header, tells, packet = await ctx.tick().sample(
                dut.header_out.valid & dut.header_out.ready, dut.header_out.payload,
                dut.indexes.valid & dut.indexes.ready, dut.indexes.payload)
            if tells:  # of headers that left in cycles before this one
                gpu.told(decoder(dut.indexes.payload.shape())(packet.as_value().value))
            if head:
                gpu.list(decoder(dut.header_out.payload.shape())(header.as_value().value))
        ctx.set(dut.consumed, {})
        await ctx.tick().repeat(6)
        assert ctx.get(dut.idle)
        counters.update({name: ctx.get(dut.counters[name])
                         for name in dut.counters.shape().members})

    async def early(ctx):
        """The ring is there some cycles before the first list."""
        ctx.set(dut.headers.valid, 0)
        await ctx.tick().repeat(6)
        await sender(dut.headers, headers, stall=gap)(ctx)

    simulate(powered_up(dut), kernel, early,
             receiver(dut.lists, counts, len(headers), stall=stall))
    assert counts == [header["count"] for header in headers]
    assert counters["lists"] == 80 and counters["lists_told"] == gpu.indexes
    assert (counters["bad_consumed"] > 0) == (wrong > 0)
    if most == 255:
        assert gpu.indexes < 80


def test_off():
    """Without rings, headers pass in the cycle in which they come, to a queue of the host's."""
    headers = lists_of(random.Random(2), 20)
    dut, out = made(ListRing), []

    async def settings(ctx):
        ctx.set(dut.place.base, BASE)

    cycles = simulate(dut, settings, sender(dut.headers, headers),
                      receiver(dut.header_out, out, 20))
    assert cycles <= 22
    assert out == [{**header, "address": 0, "answers": 0, "status": 0} for header in headers]


def test_a_kernel_that_consumes_nothing():
    """The ring fills up, its index is told, and the rest waits, counted."""
    headers = lists_of(random.Random(5), 6)
    dut, seen = made(ListRing), []

    async def bench(ctx):
        ctx.set(dut.enable, 1)
        ctx.set(dut.place.ring_shift, 2)
        ctx.set(dut.most, 200)
        for port in (dut.header_out, dut.indexes, dut.lists):
            ctx.set(port.ready, 1)
        for _ in range(200):
            _, _, come, tells, packet = await ctx.tick().sample(
                dut.header_out.valid, dut.indexes.valid, dut.indexes.payload)
            if tells:
                seen.append(packet.record)
            seen.extend(["list"] * come)
        assert not ctx.get(dut.idle) and ctx.get(dut.counters.stall_full) > 100

    simulate(dut, bench, background=[sender(dut.headers, headers)])
    assert seen == ["list"] * 4 + [4]


def test_a_list_that_waits_for_those_before_is_no_reason_to_keep_silent():
    """What is to be answered is not taken until the GPU answers, so it must know of it."""
    dut, told = made(ListRing), []

    async def bench(ctx):
        ctx.set(dut.enable, 1)
        ctx.set(dut.place.ring_shift, 4)
        ctx.set(dut.most, 200)
        ctx.set(dut.header_out.ready, 1)
        ctx.set(dut.indexes.ready, 1)
        for _ in range(100):
            _, _, tells, packet = await ctx.tick().sample(dut.indexes.valid, dut.indexes.payload)
            told.extend([packet.record] * tells)

    simulate(dut, bench, background=[sender(dut.headers, lists_of(random.Random(5), 6))])
    assert told == [2]  # that many are kept for the GPU to answer


def test_latency_and_rate():
    dut, at, heads = made(ListRing), {}, []
    head = lists_of(random.Random(1), 1)[0]

    async def bench(ctx):
        ctx.set(dut.enable, 1)
        ctx.set(dut.place.ring_shift, 10)
        ctx.set(dut.most, 100)
        for port in (dut.header_out, dut.indexes, dut.lists):
            ctx.set(port.ready, 1)
        await ctx.tick().repeat(8)
        ctx.set(dut.headers.payload, head)
        ctx.set(dut.headers.valid, 1)
        for cycle in range(12):
            _, _, came, tells = await ctx.tick().sample(dut.header_out.valid, dut.indexes.valid)
            ctx.set(dut.headers.valid, 0)
            if came:
                at["header"] = cycle
            if tells:
                at["index"] = cycle
        ctx.set(dut.headers.valid, 1)
        for cycle in range(120):
            _, _, came = await ctx.tick().sample(dut.header_out.valid)
            heads.extend([cycle] * came)

    simulate(dut, bench)
    assert at["header"] == dut.LATENCY["header", "the same header"]
    assert at["index"] == dut.LATENCY["header", "its index"]
    assert len(heads) > 15 and {b - a for a, b in pairwise(heads)} == {6}
