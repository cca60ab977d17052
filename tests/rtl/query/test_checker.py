"""Query checker against a Python model of the same records."""

import random

import pytest
from amaranth.hdl import Value

from rtl.config import preset
from rtl.formats import Status
from rtl.query import QueryChecker
from tests.rtl.descriptors import COLUMN, REPLICATED, ROW, Table, descriptor_writer
from tests.rtl.query.queries import NO_SAMPLE, Reading, beats, empty, head, key
from tests.support import counts_of, decoder, made, receiver, send_at_once, simulate

CONFIG = preset("tiny").with_fields(hold_vectors=32)
LARGEST = CONFIG.sample_slots
NODE, NODES = 2, 6
TABLES = {
    0: Table(rows=50, owner=2), 1: Table(rows=1 << 33, owner=3), 2: Table(kind=ROW, owners=6),
    3: Table(kind=REPLICATED), 4: Table(kind=COLUMN), 5: Table(valid=0),
    6: Table(kind=ROW, owner=4, owners=6), 31: Table(owner=5),
}
GOOD = [0, 1, 2, 3, 31]
STALLS = [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.3, 0.3)]


def good_slots(count: int, rng: random.Random) -> list[int]:
    """Return ``count`` slots that form whole bags."""
    slots, in_bag = [], False
    while len(slots) < count:
        if not in_bag and rng.random() < 0.2:
            slots.append(empty(rng.getrandbits(14)))
            continue
        in_bag = len(slots) < count - 1 and rng.random() < 0.5
        slots.append(key(rng.choice(GOOD), rng.randrange(50), end=not in_bag))
    return slots


def good_sample(number: int, count: int, rng: random.Random) -> list[int]:
    return [head(number, count), *good_slots(count, rng)]


def run(packets: list[tuple[list[int], int]], stalls=(0.0, 0.0), config=CONFIG, seed=0,
        open_step=None):
    """Run packets of (records, step) through a checker, paced by its credits.

    Return its output, the expected output, and its counters.
    """
    rng = random.Random(seed)
    reading = Reading(TABLES, NODE, NODES, config.sample_slots, open_step)
    for records, step in packets:
        for record in records:
            reading.read(record, step)
    items = [b for records, step in packets for b in beats(records, step, rng)]
    dut, slots, errors, counters = made(QueryChecker, config), [], [], {}

    async def feed(ctx):
        ctx.set(dut.training, open_step is not None)
        ctx.set(dut.open_step, open_step or 0)
        for sent, item in enumerate(items):
            while sent - ctx.get(dut.consumed) >= config.query_beats or rng.random() < stalls[0]:
                await ctx.tick()
            await send_at_once(ctx, dut.i, item)
        await ctx.tick().until(dut.idle)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle)
        assert ctx.get(dut.consumed) == len(items) & 0xFFFF
        counters.update(counts_of(ctx, dut.counters))

    cycles = simulate(
        dut, descriptor_writer(dut, TABLES, NODE, NODES, then=feed),
        receiver(dut.o, slots, len(reading.slots), stall=stalls[1]),
        receiver(dut.errors, errors, len(reading.errors), stall=stalls[1], seed=2))
    return slots, errors, reading, counters, cycles


def check(packets, **options):
    slots, errors, reading, counters, cycles = run(packets, **options)
    for got, want in zip(slots, reading.slots, strict=True):
        if want["owner"] is None:
            got["owner"] = None  # an empty bag has no owner
        assert got == want
    assert errors == reading.errors
    assert counters == counters | {
        "samples": sum(s["last"] for s in reading.slots),
        "keys": sum(s["kind"] != 2 for s in reading.slots),
        "empty_bags": sum(s["kind"] == 2 for s in reading.slots),
        "rejected": sum(e["sample"] != NO_SAMPLE for e in reading.errors),
        "strays": reading.strays, "over_credit": 0}
    return reading, cycles


def cut(records: list[int], rng: random.Random, step: int = 3) -> list[tuple[list[int], int]]:
    """Cut records into packets of random length."""
    packets = []
    while records:
        length = rng.randrange(1, 30)
        packets.append((records[:length], step))
        records, step = records[length:], step + 1
    return packets


@pytest.mark.parametrize("stalls", STALLS)
def test_good_samples_pass_whole(stalls):
    rng = random.Random(1)
    records = [r for n in range(40) for r in good_sample(
        n << 20, rng.choice([1, 2, 5, 9, LARGEST]), rng)]
    reading, _ = check(cut(records, rng), stalls=stalls)
    assert not reading.errors and reading.slots


def test_the_end_of_a_share_is_told():
    """The end of a share is an EMPTY slot; a key after such a head belongs to a sample."""
    rng = random.Random(2)
    records = [*good_sample(1, 3, rng), head(2, 1, ends=True), empty(), *good_sample(3, 1, rng),
               head(4, 1, ends=True), key(0, 1), head(5, 1), empty()]
    reading, _ = check([(records, 9)])
    assert [slot["sample"] for slot in reading.slots if slot["ends"]] == [2]
    assert reading.slots[-1]["sample"] == 5


@pytest.mark.parametrize("open_step", [0, 0xFFFE, None])
def test_in_training_samples_far_ahead_are_refused(open_step):
    """A sample far ahead would block the head of the queue."""
    rng = random.Random(3)
    packets = [(good_sample(n, 3, rng), (open_step or 0) + ahead & 0xFFFF)
               for n, ahead in enumerate((0, 1, 2, 1, 3, 0x7FFF, 0x8000, 0, 0xFFFF, 2, 1))]
    packets.append(([*good_sample(20, 2, rng), head(21, 0), *good_sample(22, 1, rng)],
                    (open_step or 0) + 9 & 0xFFFF))
    reading, _ = check(packets, stalls=(0.3, 0.3), open_step=open_step)
    assert [(error["sample"], error["status"]) for error in reading.errors] == (
        [(21, Status.SAMPLE_SIZE)] if open_step is None else
        [(2, Status.STEP), (4, Status.STEP), (5, Status.STEP), (9, Status.STEP),
         (20, Status.STEP), (21, Status.SAMPLE_SIZE), (22, Status.STEP)])


NOT_THERE = 999
BAD = {
    "table not written": ([head(7, 2), key(0, 1), key(9, 1)], Status.TABLE),
    "table not valid": ([head(7, 2), key(5, 1), key(0, 1)], Status.TABLE),
    "table beyond the last": ([head(7, 1), key(4095, 1)], Status.TABLE),
    "owner beyond the cluster": ([head(7, 12), *[key(6, r) for r in range(12)]], Status.TABLE),
    "row beyond the table": ([head(7, 3), key(0, 49), key(0, 50), key(0, 1)], Status.ROW),
    "row of 34 bits": ([head(7, 1), key(1, 1 << 33)], Status.ROW),
    "split by columns": ([head(7, 1), key(4, 1)], Status.KIND),
    "no slots": ([head(7, 0)], Status.SAMPLE_SIZE),
    "a slot too many": ([head(7, LARGEST + 1), *[key(0, 1)] * (LARGEST + 1)], Status.SAMPLE_SIZE),
    "far too large": ([head(7, 60), *[key(0, NOT_THERE)] * 60], Status.SAMPLE_SIZE),
    "too large and cut short": ([head(7, 65535), key(0, 1)], Status.SAMPLE_SIZE),
    "bag open at the end": ([head(7, 2), key(0, 1), key(0, 2, end=False)], Status.SAMPLE_SIZE),
    "empty slot in a bag": ([head(7, 3), key(0, 1, end=False), empty(), key(0, 2)],
                            Status.SAMPLE_SIZE),
    "empty slot at the end of a bag": ([head(7, 2), key(0, 1, end=False), empty()],
                                       Status.SAMPLE_SIZE),
    "the end of a share with two slots": ([head(7, 2, ends=True), empty(), empty()],
                                          Status.SAMPLE_SIZE),
    "no slot came": ([head(7, 4)], Status.TRUNCATED),
    "one slot missing": ([head(7, LARGEST), *[key(0, 1)] * (LARGEST - 1)], Status.TRUNCATED),
    "cut in a bag": ([head(7, 3), key(0, 1, end=False)], Status.TRUNCATED),
    "two faults, one answer": ([head(7, 3), key(9, 1), key(0, 77), key(0, 1, end=False)],
                               Status.TABLE),
    "fault, then cut": ([head(7, 9), key(0, 50), key(0, 1)], Status.ROW),
    "slots that have no sample": ([key(0, 1), empty(), key(9, 9)], Status.NO_SAMPLE),
    "more slots than announced": ([head(7, 1), key(0, 50), key(0, 1)], Status.ROW),
}


@pytest.mark.parametrize("stalls", [
    pytest.param((0.0, 0.0), marks=pytest.mark.slow), (0.3, 0.3)])
@pytest.mark.parametrize("name", BAD)
def test_bad_sample_is_answered_once(name, stalls):
    """Send a bad sample between good samples: it causes one error (or one for its strays) and no
    other change."""
    records, status = BAD[name]
    rng = random.Random(name)
    before, after = good_sample(1, 6, rng), good_sample(2, LARGEST, rng)
    reading, _ = check(cut(before + records + after, rng), stalls=stalls, seed=len(name))
    named = [e for e in reading.errors if e["sample"] == 7]
    if status == Status.NO_SAMPLE:
        assert not named and [e["status"] for e in reading.errors] == [status]
    else:
        assert [e["status"] for e in named] == [status]
    assert {s["sample"] for s in reading.slots} == {1, 2}


@pytest.mark.parametrize("stalls", STALLS)
def test_good_and_bad_mixed(stalls):
    rng = random.Random(8)
    bad = list(BAD.values())
    records = []
    for number in range(40):
        if rng.random() < 0.5:
            records += good_sample(100 + number, rng.randrange(1, LARGEST + 1), rng)
        else:
            records += rng.choice(bad)[0]
    records += good_sample(5, 3, rng)
    reading, _ = check(cut(records, rng), stalls=stalls, seed=9)
    assert len({e["status"] for e in reading.errors}) >= 4


@pytest.mark.parametrize("seed", range(3))
def test_noise_never_hangs(seed):
    """Send random records: checker and model agree, and good samples pass afterwards."""
    rng = random.Random(seed)
    records = [rng.choice([rng.getrandbits(64), head(rng.randrange(9), rng.randrange(4)),
                           key(rng.choice(GOOD), rng.randrange(60), rng.random() < 0.6), empty()])
               for _ in range(300)]
    # End the random records.
    records += good_sample(77, 4, rng) + good_sample(78, 4, rng)
    reading, _ = check(cut(records, rng), stalls=(0.1, 0.1), seed=seed)
    assert {77, 78} <= {s["sample"] for s in reading.slots}


def test_step_is_that_of_the_head():
    records = good_sample(9, 10, random.Random(2))
    reading, _ = check([(records[:3], 11), (records[3:5], 12), (records[5:], 65535)])
    assert {s["step"] for s in reading.slots} == {11}


@pytest.mark.parametrize("size", [1, LARGEST // 2])
def test_one_record_a_cycle(size):
    rng = random.Random(3)
    count = 800 // (size + 1)
    records = [r for n in range(count) for r in good_sample(n, size, rng)]
    _, cycles = check([(records, 1)])
    loading = CONFIG.tables + 5 * len(TABLES)
    assert len(records) / (cycles - loading) >= 0.95


def test_latency():
    """Measure from the beat on the input to the first slot of a sample whose last record it
    holds."""
    dut, cycles = made(QueryChecker, CONFIG), []

    async def feed(ctx):
        ctx.set(dut.i.payload, beats([head(1, 1), key(0, 1)], 0)[0])
        ctx.set(dut.i.valid, 1)
        await ctx.tick()
        ctx.set(dut.i.valid, 0)
        cycles.append(1)
        while not ctx.get(dut.o.valid):
            cycles[0] += 1
            await ctx.tick()

    simulate(dut, descriptor_writer(dut, TABLES, NODE, NODES, then=feed))
    # Of the last record, a cycle after the first.
    assert cycles == [QueryChecker.LATENCY["last record of a sample", "its first slot"] + 1]


class Flood:
    """Offers beats without regard to credits, and records which beats were dropped."""

    def __init__(self, dut: QueryChecker):
        self._dut = dut
        self.sent: list[tuple[dict, bool]] = []
        self.slots: list[dict] = []
        self.errors: list[dict] = []

    @property
    def lost(self) -> int:
        return sum(was_lost for _, was_lost in self.sent)

    async def offer(self, ctx, beat: dict) -> None:
        dut, before = self._dut, ctx.get(self._dut.counters.over_credit)
        await send_at_once(ctx, dut.i, beat)
        self.sent.append((beat, ctx.get(dut.counters.over_credit) != before))

    async def settle(self, ctx) -> None:
        quiet = 0
        while quiet < 60:
            before = len(self.slots), len(self.errors)
            await ctx.tick()
            quiet = quiet + 1 if before == (len(self.slots), len(self.errors)) else 0
        assert ctx.get(self._dut.idle)
        assert ctx.get(self._dut.consumed) == len(self.sent) - self.lost
        assert ctx.get(self._dut.counters.over_credit) == self.lost

    def takers(self, when, chance: float, rng: random.Random):
        """Return testbenches that take the checker's output, from ``when()`` on."""
        return [self.taker(when, chance, rng, self._dut.o, self.slots),
                self.taker(when, chance, rng, self._dut.errors, self.errors)]

    @staticmethod
    def taker(when, chance: float, rng: random.Random, port, taken: list):
        """Return a testbench that takes the items of ``port``."""
        bits, decode = Value.cast(port.payload), decoder(port.payload.shape())

        async def bench(ctx):
            while True:
                take = when() and rng.random() < chance
                ctx.set(port.ready, take)
                _, _, valid, payload = await ctx.tick().sample(port.valid, bits)
                if take and valid:
                    taken.append(decode(payload))
        return bench

    def compare(self) -> Reading:
        """Read the sent beats, with gaps, and compare."""
        reading, pending = Reading(TABLES, NODE, NODES, LARGEST), False
        for beat, was_lost in self.sent:
            for k in range(0 if was_lost else beat["records"]):
                reading.read(beat["data"] >> 64 * k & (1 << 64) - 1, beat["step"],
                             pending and k == 0)
            pending = was_lost
        if pending:
            reading.lose(self.sent[-1][0]["step"])
        for slot, want in zip(self.slots, reading.slots, strict=True):
            assert slot | {"owner": 0} == want | {"owner": 0}
        assert self.errors == reading.errors
        return reading


def flood_of(samples: int, rng: random.Random) -> list[dict]:
    """Return beats of packets with about three samples each: samples cross beats."""
    packets = []
    for at in range(0, samples, 3):
        records = [r for n in range(at, at + 3) for r in good_sample(
            n, rng.choice([3, 7, 10, LARGEST]), rng)]
        packets += beats(records, 5, rng)
    return packets


@pytest.mark.parametrize("ends_lost", [False, True])
def test_buffer_holds_the_credits_and_no_more(ends_lost):
    """While the outputs are stalled, exactly the beats that fit are kept; the following beats leave
    one gap."""
    rng, standing = random.Random(ends_lost), [True]
    dut = made(QueryChecker, CONFIG)
    flood = Flood(dut)

    async def feed(ctx):
        for beat in flood_of(40, rng):
            await flood.offer(ctx, beat)
        assert flood.lost > 10 and flood.sent[-1][1]
        # The buffer has room for the beats that the host may send and one more in its output
        # register; another beat is being unpacked.
        assert len(flood.sent) - flood.lost - ctx.get(dut.consumed) - CONFIG.query_beats in (
            0, 1, 2)
        standing[0] = False
        await flood.settle(ctx)
        if not ends_lost:
            for beat in beats(good_sample(500, 9, rng) + good_sample(501, LARGEST, rng), 5, rng):
                await flood.offer(ctx, beat)
            await flood.settle(ctx)

    simulate(dut, descriptor_writer(dut, TABLES, NODE, NODES, then=feed),
             background=flood.takers(lambda: not standing[0], 1.0, rng))
    reading = flood.compare()
    assert [e["status"] for e in reading.errors] == [Status.CREDIT]
    if not ends_lost:
        assert {500, 501} <= {s["sample"] for s in flood.slots}


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(4))
def test_gaps_between_beats_never_join_samples(seed):
    """Let the buffer overflow while it drains: many gaps, inside samples and between them."""
    rng = random.Random(seed)
    dut = made(QueryChecker, CONFIG)
    flood = Flood(dut)

    async def feed(ctx):
        for beat in flood_of(120, rng):
            await flood.offer(ctx, beat)
            for _ in range(rng.choice([0, 1, 5, 9, 12])):
                await ctx.tick()
        await flood.settle(ctx)
        for beat in beats(good_sample(500, 9, rng) + good_sample(501, LARGEST, rng), 5, rng):
            await flood.offer(ctx, beat)
        await flood.settle(ctx)

    simulate(dut, descriptor_writer(dut, TABLES, NODE, NODES, then=feed),
             background=flood.takers(lambda: True, 0.6, rng))
    reading = flood.compare()
    named = [e for e in reading.errors if e["status"] == Status.CREDIT and e["sample"] < 500]
    assert len(named) >= 3 and len(reading.slots) > 100
    assert {500, 501} <= {s["sample"] for s in flood.slots}


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not 'tiny'"):
        QueryChecker("tiny")
