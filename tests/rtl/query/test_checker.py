"""Query checker against a plain-Python reading of the same records."""

import random

import pytest

from rtl.config import preset
from rtl.formats import Status
from rtl.query import QueryChecker
from tests.rtl.descriptors import COLUMN, REPLICATED, ROW, Table, descriptor_writer
from tests.rtl.query.queries import NO_SAMPLE, Reading, beats, empty, head, key
from tests.support import _plain, receiver, simulate

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


def run(packets: list[tuple[list[int], int]], stalls=(0.0, 0.0), config=CONFIG, seed=0):
    """Run packets of (records, step) through a checker, paced by its credits.

    Returns what it gave, what it should have given, and its counters.
    """
    rng = random.Random(seed)
    reading = Reading(TABLES, NODE, NODES, config.sample_slots)
    for records, step in packets:
        for record in records:
            reading.read(record, step)
    items = [b for records, step in packets for b in beats(records, step, rng)]
    dut, slots, errors, counters = QueryChecker(config), [], [], {}

    async def feed(ctx):
        for sent, item in enumerate(items):
            while sent - ctx.get(dut.consumed) >= config.query_beats or rng.random() < stalls[0]:
                await ctx.tick()
            ctx.set(dut.i.payload, item)
            ctx.set(dut.i.valid, 1)
            assert ctx.get(dut.i.ready)
            await ctx.tick()
            ctx.set(dut.i.valid, 0)
        await ctx.tick().until(dut.idle)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle)
        assert ctx.get(dut.consumed) == len(items) & 0xFFFF
        counters.update({n: ctx.get(dut.counters[n]) for n in dut.counters.shape().members})

    cycles = simulate(
        dut, descriptor_writer(dut, TABLES, NODE, NODES, then=feed),
        receiver(dut.o, slots, len(reading.slots), stall=stalls[1]),
        receiver(dut.errors, errors, len(reading.errors), stall=stalls[1], seed=2))
    return slots, errors, reading, counters, cycles


def check(packets, **options):
    slots, errors, reading, counters, cycles = run(packets, **options)
    for got, want in zip(slots, reading.slots, strict=True):
        if want["owner"] is None:
            got["owner"] = None  # an empty bag has none
        assert got == want
    assert errors == reading.errors
    assert counters == {
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
    "no slot came": ([head(7, 4)], Status.TRUNCATED),
    "one slot missing": ([head(7, LARGEST), *[key(0, 1)] * (LARGEST - 1)], Status.TRUNCATED),
    "cut in a bag": ([head(7, 3), key(0, 1, end=False)], Status.TRUNCATED),
    "two faults, one answer": ([head(7, 3), key(9, 1), key(0, 77), key(0, 1, end=False)],
                               Status.TABLE),
    "fault, then cut": ([head(7, 9), key(0, 50), key(0, 1)], Status.ROW),
    "slots that have no sample": ([key(0, 1), empty(), key(9, 9)], Status.NO_SAMPLE),
    "more slots than announced": ([head(7, 1), key(0, 50), key(0, 1)], Status.ROW),
}


@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.3, 0.3)])
@pytest.mark.parametrize("name", BAD)
def test_bad_sample_is_answered_once(name, stalls):
    """The bad sample between good ones: one error (or one for its strays), nothing else changes."""
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
    """Random records: whatever they mean, the reading agrees and good samples pass afterwards."""
    rng = random.Random(seed)
    records = [rng.choice([rng.getrandbits(64), head(rng.randrange(9), rng.randrange(4)),
                           key(rng.choice(GOOD), rng.randrange(60), rng.random() < 0.6), empty()])
               for _ in range(300)]
    # An end to whatever the noise announced.
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
    """From the beat on the input to the first slot of a sample whose last record it holds."""
    dut, cycles = QueryChecker(CONFIG), []

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
    assert cycles == [12]  # 11 for the last record, which comes a cycle after the first


@pytest.mark.parametrize("ends_lost", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_beats_without_credit_are_dropped_and_answered(seed, ends_lost):
    """Beats sent in spite of the credits are lost; no sample goes on with another one's slots."""
    rng = random.Random(seed)
    flood = [b for n in range(40) for b in beats(good_sample(n, rng.choice([3, 7, 10, LARGEST]),
                                                             rng), 5, rng)]
    # After the flood, credits are kept again.
    after = beats(good_sample(500, 9, rng) + good_sample(501, LARGEST, rng), 5, rng)
    dut, slots, errors = QueryChecker(CONFIG), [], []
    reading = Reading(TABLES, NODE, NODES, LARGEST)
    sent: list[tuple[dict, bool]] = []

    async def offer(ctx, beat):
        before = ctx.get(dut.counters.over_credit)
        ctx.set(dut.i.payload, beat)
        ctx.set(dut.i.valid, 1)
        assert ctx.get(dut.i.ready)
        await ctx.tick()
        ctx.set(dut.i.valid, 0)
        sent.append((beat, ctx.get(dut.counters.over_credit) != before))

    async def feed(ctx):
        for beat in flood:
            await offer(ctx, beat)
        while ends_lost and not sent[-1][1]:
            await offer(ctx, rng.choice(flood))
        lost = sum(was_lost for _, was_lost in sent)
        assert lost > 10 and lost == ctx.get(dut.counters.over_credit)
        # The buffer has room for what the host may send, and one more in its output register.
        assert len(sent) - lost - ctx.get(dut.consumed) in (
            CONFIG.query_beats, CONFIG.query_beats + 1)
        await drain(ctx)
        for beat in after:
            await offer(ctx, beat)
        await drain(ctx)
        pending = False
        for beat, was_lost in sent:
            for k in range(0 if was_lost else beat["records"]):
                reading.read(beat["data"] >> 64 * k & (1 << 64) - 1, beat["step"],
                             pending and k == 0)
            pending = was_lost
        assert ctx.get(dut.consumed) == len(sent) - lost

    async def drain(ctx):
        for port in (dut.o, dut.errors):
            ctx.set(port.ready, 1)
        quiet = 0
        while quiet < 40:
            for port, taken in ((dut.o, slots), (dut.errors, errors)):
                if ctx.get(port.valid):
                    taken.append(_plain(ctx.get(port.payload)))
                    quiet = 0
            quiet += 1
            await ctx.tick()
        assert ctx.get(dut.idle)

    simulate(dut, descriptor_writer(dut, TABLES, NODE, NODES, then=feed))
    if ends_lost:
        assert sent[len(sent) - len(after) - 1][1]
    for slot, want in zip(slots, reading.slots, strict=True):
        assert slot | {"owner": 0} == want | {"owner": 0}
    assert errors == reading.errors
    assert any(e["status"] == Status.CREDIT for e in errors)
    assert {500, 501} <= {s["sample"] for s in slots}


def test_config_is_checked():
    with pytest.raises(TypeError, match="config must be a NicConfig, not 'tiny'"):
        QueryChecker("tiny")
