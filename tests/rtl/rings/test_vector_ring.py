"""Vector ring: each filled slot is read once, and announced as free only after that."""

import functools
import random
from collections import deque

import pytest

from rtl.formats import HeaderBeat, IndexRecord, Opcode, ReadRecord
from rtl.rings import SlotLength, VectorRing
from tests.mutants import variant
from tests.rtl.power_up import powered_up
from tests.support import counts_of, decoder, made, receiver, sender, simulate

BASE, INDEX_AT, SHIFT = 0x7000_0002_0000, 0x7000_0000_0080, 10


@functools.cache
def after(first: int) -> type:
    """Return the block in its state after ``first`` lists."""
    return variant(
        VectorRing, ("sent, filled, read, out = (Signal(INDEX_BITS, name=name)",
                     f"sent, filled, read, out = (Signal(INDEX_BITS, name=name, init={first})"),
        ("length, told, ahead = Signal(Length), Signal(INDEX_BITS),",
         f"length, told, ahead = Signal(Length), Signal(INDEX_BITS, init={first}),"))


def header_beat(opcode: int, count: int, tag: int = 0) -> int:
    """Return a header beat; read data are counted in words of 8 bytes."""
    count *= 8 if opcode == Opcode.READ_DATA else 1
    return HeaderBeat.const({"ember": {
        "version": 1, "opcode": opcode, "count": count, "acknowledge": tag}}).as_value().value


class Gpu:
    """A kernel that fills slots, and a shell that reads them, in any order, with and without
    errors."""

    def __init__(self, rng, lists: range, slots: int, outstanding: int, wrong: float):
        self.rng, self.slots, self.outstanding, self.wrong = rng, slots, outstanding, wrong
        self.lengths = {number: rng.choice((1, 2, rng.randrange(1, 12))) for number in lists}
        self.known = self.filled = self.freed = self.stored = lists.start
        self.memory: list = [None] * slots
        self.reads: list[int] = []
        self.answers: deque = deque()
        self.arrived: set[int] = set()
        self.landed: set[int] = set()
        self.bad = self.short = self.bad_index = 0
        self.first = self.out = lists.start
        self.checks: deque = deque()
        self.coming: int | None = None

    def contents(self, number: int) -> list[int]:
        rng = random.Random(number)
        return [rng.getrandbits(512) for _ in range(self.lengths[number])]

    def kernel(self) -> int | None:
        """Fill free slots of sent lists; return a count to store."""
        rng = self.rng
        if rng.random() < self.wrong:
            ahead = rng.choice((self.slots + 1, self.slots + 1 + rng.randrange(30000), -1, -29000))
            self.bad_index += ahead > 0
            return self.stored + ahead if ahead < 0 else self.filled + ahead
        while self.filled < min(self.known, self.freed + self.slots) and rng.random() < 0.3:
            self.memory[self.filled % self.slots] = self.contents(self.filled)
            self.filled += 1
        if self.filled > self.stored and rng.random() < 0.3:
            self.stored = rng.randint(self.stored + 1, self.filled)
            return self.stored
        return None

    def asked(self, address: int, length: int, tag: int) -> None:
        """Take a read of a filled slot: the first, or a repetition after a failure."""
        outstanding = set(range(self.out, self.first)) - self.arrived
        if tag == self.first & 0xFFFF:
            number = self.first
            self.first += 1
        else:
            [number] = [n for n in outstanding if n & 0xFFFF == tag]
        assert number < self.stored and number not in self.arrived | set(self.reads)
        assert len(self.reads) < self.outstanding and self.first - self.out <= self.outstanding
        assert address == BASE + number % self.slots * (1 << SHIFT)
        assert length == 64 * self.lengths[number]
        self.reads.append(number)

    def answer(self) -> list[int] | None:
        """Return a packet of READ_DATA: requested data, a failure, or unrequested data."""
        rng, self.coming = self.rng, None
        if rng.random() < self.wrong:
            self.bad += 1
            tag = rng.choice((self.out - 1 - rng.randrange(2),
                              self.first + self.outstanding + rng.randrange(1 << 14)))
            return [header_beat(Opcode.READ_DATA, 1, tag & 0xFFFF), rng.getrandbits(512)]
        if not self.reads or rng.random() < 0.7:
            return None
        number = self.reads.pop(rng.randrange(len(self.reads)))
        beats = self.memory[number % self.slots]
        if rng.random() < 2 * self.wrong:
            self.short += 1
            beats = beats[:-1] or [0, 0]
        else:
            self.checks.append(number)
            self.coming = number
        return [header_beat(Opcode.READ_DATA, len(beats), number & 0xFFFF), *beats]

    def taken(self) -> None:
        """Note that the NIC has taken the offered packet."""
        if self.coming is not None:
            self.arrived.add(self.coming)
        while self.out in self.arrived:
            self.out += 1

    def packet(self, beats: list[int]) -> None:
        """Take a packet of vectors: the vectors of a slot, which is thereby read."""
        number = self.checks.popleft()
        assert beats == [header_beat(Opcode.GPU_VECTORS, 100 + number & 0xFFFF, number & 0xFFFF),
                         *self.contents(number)]
        assert number not in self.landed
        self.landed.add(number)

    def index(self, index: int) -> None:
        """Take the count of slots that may be filled again."""
        ahead = (index - self.freed) & 0xFFFF
        assert ahead <= self.out - self.freed and ahead
        self.freed += ahead


@pytest.mark.parametrize("outstanding, slots, every, stall, wrong, first", [
    (2, 2, 1, 0.0, 0.0, 0xFFE0), (4, 8, 3, 0.3, 0.02, 0xFFE0), (32, 16, 0, 0.0, 0.01, 0xFFE0),
    (2, 16, 5, 0.5, 0.05, 0), (8, 1, 200, 0.2, 0.0, 0)])
def test_every_slot_once_whatever_comes(outstanding, slots, every, stall, wrong, first):
    """Number lists from ``first`` on, through the wrap of numbers."""
    total, end = 60, first + 60
    dut = made(after(first), outstanding, max(4, outstanding))
    gpu = Gpu(random.Random(slots + every), range(first, end), slots, outstanding, wrong)
    counters = {}

    async def kernel(ctx):
        ctx.set(dut.read, 1)
        ctx.set(dut.place.base, BASE)
        ctx.set(dut.place.slot_shift, SHIFT)
        ctx.set(dut.place.ring_shift, slots.bit_length() - 1)
        ctx.set(dut.index_address, INDEX_AT)
        ctx.set(dut.every, every)
        await ctx.tick().repeat(4)
        rng, packet, offered = random.Random(8), [], deque()
        while gpu.freed < end or offered:
            count = gpu.kernel() if gpu.freed < end else None
            ctx.set(dut.produced, {"valid": count is not None, "index": (count or 0) & 0xFFFF})
            if not offered and (made_ := gpu.answer()):
                offered.extend((beat, k == len(made_) - 1) for k, beat in enumerate(made_))
            offers = bool(offered) and rng.random() >= stall
            ctx.set(dut.i.valid, offers)
            if offers:
                ctx.set(dut.i.payload, dict(zip(("item", "last"), offered[0])))
            for port in (dut.records, dut.o):
                ctx.set(port.ready, rng.random() >= stall)
            _, _, taken, head, record, leaves, beat = await ctx.tick().sample(
                dut.i.valid & dut.i.ready, dut.records.valid & dut.records.ready,
                dut.records.payload, dut.o.valid & dut.o.ready, dut.o.payload)
            if taken and offered.popleft()[1]:
                gpu.taken()
            if leaves:
                packet.append(beat.item)
                if beat.last:
                    gpu.packet(packet)
                    packet = []
            if head:
                asks = decoder(dut.records.payload.shape())(record.as_value().value)
                if asks["opcode"] == Opcode.INDEX:
                    assert asks["address"] == INDEX_AT
                    gpu.index(decoder(IndexRecord)(asks["record"])["index"])
                else:
                    read = decoder(ReadRecord)(asks["record"])
                    assert asks["opcode"] == Opcode.READ
                    gpu.asked(asks["address"], read["bytes"], read["tag"])
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.produced, {})
        await ctx.tick().repeat(12)
        assert ctx.get(dut.idle) and gpu.landed == set(gpu.lengths)
        counters.update(counts_of(ctx, dut.counters))

    async def lists(ctx):
        for number, length in gpu.lengths.items():
            ctx.set(dut.lengths.payload, {"vectors": 100 + number & 0xFFFF, "beats": length})
            ctx.set(dut.lengths.valid, 1)
            await ctx.tick().until(dut.lengths.ready)
            ctx.set(dut.lengths.valid, 0)
            gpu.known = number + 1
            await ctx.tick().repeat(1 + gpu.rng.randrange(6))

    simulate(powered_up(dut), kernel, lists)
    assert counters["slots"] == total and counters["repeats"] == gpu.short
    assert counters["reads"] == total + gpu.short
    assert (counters["bad_data"], counters["short_data"]) == (gpu.bad, gpu.short)
    assert counters["bad_index"] == gpu.bad_index


def test_a_count_beyond_the_lists_that_were_sent_is_refused():
    dut, reads = made(VectorRing, 2, 4), []

    async def bench(ctx):
        ctx.set(dut.place.ring_shift, 3)
        ctx.set(dut.records.ready, 1)
        await ctx.tick().repeat(3)
        ctx.set(dut.lengths.payload, {"vectors": 1, "beats": 2})
        ctx.set(dut.lengths.valid, 1)
        await ctx.tick()
        ctx.set(dut.lengths.valid, 0)
        for index in (2, 0x8000, 0x7FFF, 1, 1):
            ctx.set(dut.produced, {"valid": 1, "index": index})
            await ctx.tick()
        ctx.set(dut.produced, {})
        for _ in range(30):
            _, _, come = await ctx.tick().sample(dut.records.valid)
            reads.append(come)
        assert sum(reads) == 1 and ctx.get(dut.counters.bad_index) == 2 and ctx.get(dut.idle)

    simulate(dut, bench)


@pytest.mark.parametrize("first", [0, 0xFFFE])
def test_as_many_lists_wait_as_it_has_places_for(first):
    dut = made(after(first), 2, 4)
    lengths = [{"vectors": n, "beats": n} for n in range(1, 9)]

    async def bench(ctx):
        await ctx.tick().repeat(20)
        assert ctx.get(dut.known) == first + 4 & 0xFFFF
        ctx.set(dut.place.ring_shift, 3)
        ctx.set(dut.records.ready, 1)
        ctx.set(dut.produced, {"valid": 1, "index": first + 1 & 0xFFFF})
        await ctx.tick()
        ctx.set(dut.produced, {})
        record, = await ctx.tick().sample(dut.records.payload.record).until(dut.records.valid)
        assert decoder(ReadRecord)(record)["bytes"] == 64, "of the first list"

    simulate(dut, bench, background=[sender(dut.lengths, lengths)])


@pytest.mark.parametrize("first", [0, 0xFFFE])
def test_reads_that_nobody_answers(first):
    """The number of reads is limited to the reads that may be outstanding, also where the numbers
    of lists wrap."""
    dut, tags = made(after(first), 4, 8), []

    async def bench(ctx):
        ctx.set(dut.place.ring_shift, 3)
        ctx.set(dut.records.ready, 1)
        await ctx.tick().repeat(12)
        ctx.set(dut.produced, {"valid": 1, "index": first + 8 & 0xFFFF})
        await ctx.tick()
        ctx.set(dut.produced, {})
        for _ in range(80):
            _, _, come, record = await ctx.tick().sample(
                dut.records.valid, dut.records.payload.record)
            tags.extend([decoder(ReadRecord)(record)["tag"]] * come)

    simulate(dut, bench, background=[
        sender(dut.lengths, [{"vectors": 1, "beats": 2}] * 8)])
    assert tags == [first + n & 0xFFFF for n in range(4)]


def test_slots_are_told_of_when_there_are_as_many_as_asked_for():
    """Two slots that were read are not announced, three are, while more are outstanding."""
    dut, told = made(VectorRing, 4, 8), []

    async def bench(ctx):
        ctx.set(dut.read, 1)
        ctx.set(dut.every, 3)
        ctx.set(dut.place.ring_shift, 3)
        for port in (dut.records, dut.o):
            ctx.set(port.ready, 1)
        await ctx.tick().repeat(12)
        ctx.set(dut.produced, {"valid": 1, "index": 8})
        await ctx.tick()
        ctx.set(dut.produced, {})
        await ctx.tick().repeat(40)
        for tag in range(3):
            assert not told
            for beat in (header_beat(Opcode.READ_DATA, 1, tag), 77):
                ctx.set(dut.i.payload, {"item": beat, "last": int(beat == 77)})
                ctx.set(dut.i.valid, 1)
                await ctx.tick().until(dut.i.ready)
            ctx.set(dut.i.valid, 0)
            await ctx.tick().repeat(30)
        assert told == [3]

    async def watch(ctx):
        async for _, _, come, packet in ctx.tick().sample(dut.records.valid, dut.records.payload):
            if come and packet.opcode == Opcode.INDEX:
                told.append(decoder(IndexRecord)(packet.record)["index"])

    simulate(dut, bench, background=[
        watch, sender(dut.lengths, [{"vectors": 1, "beats": 1}] * 8)], limit=500)


def test_latency():
    dut, at = made(VectorRing, 2, 4), {}

    async def bench(ctx):
        ctx.set(dut.place.ring_shift, 3)
        for port in (dut.records, dut.o):
            ctx.set(port.ready, 1)
        ctx.set(dut.read, 1)
        ctx.set(dut.lengths.payload, {"vectors": 1, "beats": 1})
        ctx.set(dut.lengths.valid, 1)
        await ctx.tick()
        ctx.set(dut.lengths.valid, 0)
        await ctx.tick().repeat(8)
        beats = [header_beat(Opcode.READ_DATA, 1, 0), 77]
        for cycle in range(60):
            ctx.set(dut.produced, {"valid": cycle == 0, "index": 1})
            offer = beats if cycle >= 20 else []
            ctx.set(dut.i.valid, bool(offer))
            ctx.set(dut.i.payload, {"item": offer[0] if offer else 0, "last": len(offer) == 1})
            _, _, taken, head, opcode, come, beat = await ctx.tick().sample(
                dut.i.ready & dut.i.valid, dut.records.valid, dut.records.payload.opcode,
                dut.o.valid, dut.o.payload)
            if taken:
                beats.pop(0)
            if head:
                at["index" if opcode == Opcode.INDEX else "read"] = cycle
            if come:
                at["last" if beat.last else "first"] = cycle

    simulate(dut, bench)
    said = dut.LATENCY
    assert at["read"] == said["slots filled", "the first read"]
    assert at["first"] - 20 == said["header beat", "the header beat that leaves"]
    assert at["index"] - at["last"] == said["last beat of a slot", "its index"]


def test_rates():
    """Reads follow each other without gaps, and so do the packets of their data."""
    dut, total = made(VectorRing, 16, 16), 14
    items = [(beat, k == 4) for tag in range(total)
             for k, beat in enumerate([header_beat(Opcode.READ_DATA, 4, tag), 1, 2, 3, 4])]
    headers, out = [], []

    async def bench(ctx):
        ctx.set(dut.place.ring_shift, 6)
        ctx.set(dut.every, 200)
        await ctx.tick().repeat(total + 4)
        ctx.set(dut.produced, {"valid": 1, "index": total})
        await ctx.tick()
        ctx.set(dut.produced, {})
        cycles = 0
        while len(headers) < total:
            await ctx.tick()
            cycles += 1
        assert cycles <= 7 * total + 8

    simulate(dut, bench, background=[
        sender(dut.lengths, [{"vectors": 2, "beats": 4}] * total),
        receiver(dut.records, headers, 100)])
    headers.clear()

    async def data(ctx):
        ctx.set(dut.read, 1)
        ctx.set(dut.place.ring_shift, 6)
        ctx.set(dut.every, 200)
        await ctx.tick().repeat(total + 4)
        ctx.set(dut.produced, {"valid": 1, "index": total})
        await ctx.tick()
        ctx.set(dut.produced, {})
        while len(headers) < total:
            await ctx.tick()
        cycles = 0
        for item, last in items:
            ctx.set(dut.i.payload, {"item": item, "last": last})
            ctx.set(dut.i.valid, 1)
            while True:
                _, _, ready = await ctx.tick().sample(dut.i.ready)
                cycles += 1
                if ready:
                    break
        ctx.set(dut.i.valid, 0)
        assert cycles <= total * (4 + 5) + 4

    simulate(dut, data, background=[
        sender(dut.lengths, [{"vectors": 2, "beats": 4}] * total),
        receiver(dut.records, headers, 100),
        receiver(dut.o, out, 1000)])


@pytest.mark.parametrize("beats, packing", [(1, 0), (4, 0), (16, 0), (1, 1), (1, 2)])
def test_lengths(beats, packing):
    dut, out = made(SlotLength), []
    numbers = [1, 2, 3, 4, 5, 31, 32, 33, 64, 65, 500]

    async def settings(ctx):
        ctx.set(dut.vector_beats, beats)
        ctx.set(dut.vector_packing, packing)

    cycles = simulate(dut, settings, sender(dut.i, numbers), receiver(dut.o, out, len(numbers)))
    assert cycles <= 7 * len(numbers) + 7
    assert out == [{"vectors": n, "beats": -(-n // 32) + beats * -(-n // (1 << packing))}
                   for n in numbers]


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="outstanding must be an integer, not True"):
        VectorRing(True)
    with pytest.raises(ValueError, match="outstanding must be a power of two between 2 and 256"):
        VectorRing(3)
    with pytest.raises(ValueError, match="lists must be a power of two between 32 and 4096"):
        VectorRing(32, 16)
