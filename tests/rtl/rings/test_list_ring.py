"""List ring: each list in its slot, the index after it, and no slot before it is consumed."""

import functools
import random
from itertools import pairwise

import pytest

from rtl.formats import Opcode
from rtl.rings import ListRing
from tests.mutants import variant
from tests.rtl.power_up import powered_up
from tests.support import counts_of, decoder, made, receiver, sender, simulate

BASE, INDEX_AT = 0x7000_0001_0000, 0x7000_0000_0040


@functools.cache
def after(first: int) -> type:
    """Return the block in its state after ``first`` lists."""
    count = f"Signal(INDEX_BITS, init={first})"
    return variant(
        ListRing, ("written, told, free = Signal(INDEX_BITS), Signal(INDEX_BITS),",
                   f"written, told, free = {count}, {count},"),
        ("consumed, bad = Signal(RingIndex), Signal(INDEX_BITS),",
         f"consumed, bad = Signal(RingIndex), {count},"),
        ("Signal(IndexRecord)", f"Signal(IndexRecord, init={{'index': {first}}})"))


def lists_of(rng: random.Random, count: int):
    """Return headers of lists."""
    return [{"opcode": Opcode.LOOKUP_REQUESTS, "destination": 0, "step": rng.getrandbits(16),
             "count": rng.randrange(1, 177), "credit": rng.getrandbits(16), "empty": 0,
             "final_beat": 0}
            for _ in range(count)]


class Gpu:
    """GPU memory with a ring, and a kernel that consumes the announced lists."""

    def __init__(self, rng: random.Random, headers, slots: int, bytes_: int, first: int):
        self.rng, self.headers, self.slots, self.bytes = rng, headers, slots, bytes_
        self.came = self.index = self.consumed = self.answerable = self.first = first
        self.indexes = 0

    def list(self, header: dict) -> None:
        """Check a header: the next list, in its slot."""
        assert {k: header[k] for k in self.headers[0]} == self.headers[self.came - self.first]
        assert header["address"] == BASE + self.came % self.slots * self.bytes
        assert self.came - self.consumed < self.slots, "not consumed"
        self.came += 1

    def told(self, packet: dict) -> None:
        """Check an index: the number of lists that have left and may be answered."""
        assert packet["address"] == INDEX_AT and packet["opcode"] == Opcode.INDEX
        ahead = (packet["record"] - self.index) & 0xFFFF
        assert 0 < ahead <= self.answerable - self.index
        self.index, self.indexes = self.index + ahead, self.indexes + 1

    def stores(self, wrong: float) -> int | None:
        """Return a count that the kernel stores: correct, old, or beyond the announced number."""
        rng = self.rng
        if rng.random() < wrong:
            return rng.choice((self.consumed - rng.randrange(30000),
                               self.came + self.slots + 3 + rng.randrange(30000)))
        if self.index > self.consumed and rng.random() < 0.2:
            self.consumed = rng.randint(self.consumed + 1, self.index)
            return self.consumed
        return None


@pytest.mark.parametrize("slots, gap, stall, wrong, first", [
    (2, 0.0, 0.0, 0.0, 0), (4, 0.0, 0.3, 0.1, 0xFFE0), (16, 0.0, 0.0, 0.0, 0xFFE0),
    (8, 0.4, 0.5, 0.2, 0), (1, 0.2, 0.2, 0.0, 0xFFE0), (16, 0.0, 0.9, 0.0, 0)])
def test_every_list_in_its_slot_and_then_its_index(slots, gap, stall, wrong, first):
    """Number lists from ``first`` on, through the wrap of numbers."""
    rng, shift = random.Random(slots), 10
    headers = lists_of(rng, 80)
    gpu = Gpu(rng, headers, slots, 1 << shift, first)
    dut, counters, counts = made(after(first)), {}, []

    async def kernel(ctx):
        ctx.set(dut.enable, 1)
        ctx.set(dut.answerable, first)
        ctx.set(dut.place.base, BASE)
        ctx.set(dut.place.slot_shift, shift)
        ctx.set(dut.place.ring_shift, slots.bit_length() - 1)
        ctx.set(dut.index_address, INDEX_AT)
        stream = random.Random(3)
        while gpu.index < first + len(headers) or gpu.consumed < gpu.index:
            index = gpu.stores(wrong)
            ctx.set(dut.consumed, {"valid": index is not None, "index": (index or 0) & 0xFFFF})
            for port in (dut.header_out, dut.indexes):
                ctx.set(port.ready, stream.random() >= stall)
            gpu.answerable += (gpu.answerable < first + len(counts)) and stream.random() < 0.5
            ctx.set(dut.answerable, gpu.answerable & 0xFFFF)
            _, _, head, header, tells, packet = await ctx.tick().sample(
                dut.header_out.valid & dut.header_out.ready, dut.header_out.payload,
                dut.indexes.valid & dut.indexes.ready, dut.indexes.payload)
            if tells:  # of headers that left in earlier cycles
                gpu.told(decoder(dut.indexes.payload.shape())(packet.as_value().value))
            if head:
                gpu.list(decoder(dut.header_out.payload.shape())(header.as_value().value))
        ctx.set(dut.consumed, {})
        await ctx.tick().repeat(6)
        assert ctx.get(dut.idle)
        counters.update(counts_of(ctx, dut.counters))

    async def early(ctx):
        """Check that the ring is ready some cycles before the first list."""
        ctx.set(dut.headers.valid, 0)
        await ctx.tick().repeat(6)
        await sender(dut.headers, headers, stall=gap)(ctx)

    simulate(powered_up(dut), kernel, early,
             receiver(dut.lists, counts, len(headers), stall=stall))
    assert counts == [header["count"] for header in headers]
    assert counters["lists"] == 80 and counters["lists_told"] == gpu.indexes
    assert (counters["bad_consumed"] > 0) == (wrong > 0)
    if stall == 0.9:
        assert gpu.indexes < 80


def test_off():
    """Without rings, headers pass without delay to a queue of the host."""
    headers = lists_of(random.Random(2), 20)
    dut, out = made(ListRing), []

    async def settings(ctx):
        ctx.set(dut.place.base, BASE)

    cycles = simulate(dut, settings, sender(dut.headers, headers),
                      receiver(dut.header_out, out, 20))
    assert cycles <= 22
    assert out == [{**header, "address": 0, "answers": 0, "status": 0} for header in headers]


@pytest.mark.parametrize("first", [0, 0xFFFE])
def test_a_kernel_that_consumes_nothing(first):
    """The ring fills up, its lists are announced, and further lists wait and are counted; also
    where the numbers of lists wrap."""
    headers = lists_of(random.Random(5), 6)
    dut, seen = made(after(first)), []

    async def bench(ctx):
        ctx.set(dut.enable, 1)
        ctx.set(dut.answerable, first)
        ctx.set(dut.place.ring_shift, 2)
        for port in (dut.header_out, dut.indexes, dut.lists):
            ctx.set(port.ready, 1)
        counted = 0
        for _ in range(200):
            _, _, come, tells, packet, listed = await ctx.tick().sample(
                dut.header_out.valid, dut.indexes.valid, dut.indexes.payload, dut.lists.valid)
            counted += listed
            ctx.set(dut.answerable, first + (counted if counted == 4 else 0) & 0xFFFF)
            if tells:
                seen.append(packet.record)
            seen.extend(["list"] * come)
        assert not ctx.get(dut.idle) and ctx.get(dut.counters.stall_full) > 100

    simulate(dut, bench, background=[sender(dut.headers, headers)])
    assert seen == ["list"] * 4 + [first + 4 & 0xFFFF]


def test_a_list_is_not_told_of_before_it_may_be_answered():
    dut, told = made(ListRing), []

    async def bench(ctx):
        ctx.set(dut.enable, 1)
        ctx.set(dut.place.ring_shift, 4)
        for port in (dut.header_out, dut.indexes):
            ctx.set(port.ready, 1)
        for cycle in range(100):
            ctx.set(dut.answerable, 1 if cycle > 60 else 0)
            _, _, tells, packet = await ctx.tick().sample(dut.indexes.valid, dut.indexes.payload)
            told.extend([(cycle > 60, packet.record)] * tells)

    simulate(dut, bench, background=[sender(dut.headers, lists_of(random.Random(5), 6))])
    assert told == [(True, 1)]


def test_what_is_not_told_of_is_not_consumed():
    """A second index waits to leave: its lists may be answered, but are not announced yet."""
    dut = made(ListRing)

    async def bench(ctx):
        ctx.set(dut.enable, 1)
        ctx.set(dut.place.ring_shift, 4)
        ctx.set(dut.answerable, 1)
        await ctx.tick().until(dut.indexes.valid)
        ctx.set(dut.answerable, 3)
        await ctx.tick().repeat(4)
        assert ctx.get(dut.indexes.payload.record) == 1
        ctx.set(dut.indexes.ready, 1)
        await ctx.tick()
        ctx.set(dut.indexes.ready, 0)
        for count, bad in ((2, 1), (1, 1)):
            ctx.set(dut.consumed, {"valid": 1, "index": count})
            await ctx.tick()
            ctx.set(dut.consumed, {})
            await ctx.tick().repeat(4)
            assert ctx.get(dut.counters.bad_consumed) == bad

    simulate(dut, bench)


def test_latency_and_rate():
    dut, at, heads = made(ListRing), {}, []
    head = lists_of(random.Random(1), 1)[0]

    async def bench(ctx):
        ctx.set(dut.enable, 1)
        ctx.set(dut.place.ring_shift, 10)
        for port in (dut.header_out, dut.indexes, dut.lists):
            ctx.set(port.ready, 1)
        await ctx.tick().repeat(8)
        ctx.set(dut.headers.payload, head)
        ctx.set(dut.headers.valid, 1)
        for cycle in range(12):
            ctx.set(dut.answerable, cycle >= 4)
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
    assert at["index"] - 4 == dut.LATENCY["answerable", "index"]
    assert len(heads) > 15 and {b - a for a, b in pairwise(heads)} == {6}
