"""Query checker of a NIC with bags that pool at their owner, against a Python model."""

import random

import pytest

from host.wire.packets import pack_records
from rtl.config import preset
from rtl.formats import QueryBag, RecordKind, Status, words_of
from rtl.query import QueryChecker
from tests.rtl.bags.words import DCNV2_BAGS
from tests.rtl.descriptors import COLUMN, REPLICATED, ROW, Table, descriptor_writer
from tests.rtl.query.queries import NO_SAMPLE, Reading, beats, empty, head, key
from tests.rtl.query.test_checker import Flood
from tests.support import counts_of, made, receiver, send_at_once, simulate

CONFIG = preset("tiny").with_fields(hold_vectors=32, owner_bags=16, bag_segments=64)
LARGE = CONFIG.with_fields(hold_vectors=128)
LARGEST, MOST = CONFIG.sample_slots, CONFIG.bag_words
NODE, NODES = 2, 6
TABLES = {
    0: Table(rows=50, owner=2, mean=1), 1: Table(rows=1 << 33, owner=3),
    3: Table(kind=REPLICATED, mean=1),
    4: Table(kind=COLUMN, pool=1), 5: Table(valid=0, pool=1), 7: Table(kind=ROW, owners=6, pool=1),
    6: Table(owner=6, pool=1),
    8: Table(rows=50, owner=2, pool=1, final_beat=3),
    9: Table(rows=1 << 33, owner=4, pool=1, mean=1, final_beat=1),
    10: Table(rows=(1 << 32) - 5, owner=5, pool=1), 11: Table(kind=REPLICATED, pool=1, mean=1),
    13: Table(owner=1, pool=1, final_beat=4),
}
LATENCIES = [QueryChecker.LATENCY["last word of a sample, in a NIC with bags", f"its first {item}"]
             for item in ("slot", "segment")]
KEYS, BAGS = [0, 1, 3], [8, 9, 10, 11]


def bag(table: int, rows: list[int], wide: int = 0, weights: list[int] | None = None,
        **fields: int) -> list[int]:
    """Return the words of a bag of a sample."""
    first = pack_records(QueryBag, kind=RecordKind.KEY_END, bag=1, table=table, keys=len(rows),
                         wide=wide, weighted=int(weights is not None), **fields)
    words = [int(first[0]), *(rows if wide else _pairs(rows)), *_pairs(weights or [])]
    assert len(words) == 1 + words_of(len(rows), wide, int(weights is not None))
    return words


def _pairs(halves: list[int]) -> list[int]:
    padded = [*halves, *[0] * (len(halves) % 2)]
    return [low | high << 32 for low, high in zip(padded[::2], padded[1::2])]


def good_bag(rng: random.Random, most: int = 40) -> list[int]:
    table, count, wide = rng.choice(BAGS), rng.choice([1, 2, 3, 9, rng.randrange(1, most)]), 0
    if TABLES[table].rows > 1 << 32 or rng.random() < 0.2:
        wide = 1
    rows = [rng.choice([0, TABLES[table].rows - 1, rng.randrange(TABLES[table].rows)])
            for _ in range(count)]
    weights = [rng.getrandbits(32) for _ in rows] if rng.random() < 0.2 else None
    return bag(table, rows, wide, weights)


Items = list[list[int]]


def good_sample(number: int, slots: int, rng: random.Random, most: int = 40) -> Items:
    """Return a sample of keys, empty bags and bags, each a list of words."""
    items, in_bag = [[head(number, slots)]], False
    for left in range(slots - 1, -1, -1):
        kind = "key" if in_bag else rng.choice(["key", "bag", "bag", "empty"])
        in_bag = kind == "key" and left > 0 and rng.random() < 0.5
        items.append(good_bag(rng, most) if kind == "bag" else [empty()] if kind == "empty" else [
            key(rng.choice(KEYS), rng.randrange(50), end=not in_bag)])
    return items


def packed(items: Items, rng: random.Random, step: int = 3) -> list[tuple[list[int], int]]:
    """Put items into packets of random length, at most that of a bag; no bag crosses packets."""
    packets: list[tuple[list[int], int]] = []
    limit = 0
    for item in items:
        if not packets or len(packets[-1][0]) + len(item) > limit:
            packets.append(([], step + len(packets)))
            limit = rng.randrange(1, MOST)
        packets[-1][0].extend(item)
    return packets


def run(packets, stalls=(0.0, 0.0), config=CONFIG, seed=0, vector_beats=None):
    """Run packets of (words, step) through a checker; compare all outputs and counters.

    vector_beats: beats of the vector of a key, by default those of ``config``. Return the model and
    the number of cycles."""
    rng = random.Random(seed)
    reading = Reading(TABLES, NODE, NODES, config.sample_slots, None, config.bag_words,
                      config.bag_segments, beats=vector_beats or config.vector_beats)
    for words, step in packets:
        reading.read_packet(words, step)
    items = [beat for words, step in packets for beat in beats(words, step, rng)]
    dut, slots, errors, segments = made(QueryChecker, config), [], [], []
    counters: dict[str, int] = {}

    async def feed(ctx):
        if vector_beats:
            ctx.set(dut.vector_beats, vector_beats)
        for sent, item in enumerate(items):
            while sent - ctx.get(dut.consumed) >= config.query_beats or rng.random() < stalls[0]:
                await ctx.tick()
            await send_at_once(ctx, dut.i, item)
        await ctx.tick().until(dut.idle)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.idle) and ctx.get(dut.consumed) == len(items) & 0xFFFF
        counters.update(counts_of(ctx, dut.counters))

    cycles = simulate(
        dut, descriptor_writer(dut, TABLES, NODE, NODES, then=feed),
        receiver(dut.o, slots, len(reading.slots), stall=stalls[1]),
        receiver(dut.segments, segments, len(reading.segments), stall=stalls[1], seed=3),
        receiver(dut.errors, errors, len(reading.errors), stall=stalls[1], seed=2))
    compare(reading, slots, segments, errors)
    bags = [slot for slot in reading.slots if slot["bag"]]
    keys = [slot for slot in reading.slots if slot["kind"] != RecordKind.EMPTY]
    assert counters == {
        "samples": sum(slot["last"] for slot in reading.slots), "keys": len(keys) - len(bags),
        "empty_bags": len(reading.slots) - len(keys), "bags": len(bags),
        "bag_keys": sum(slot["key"]["row"] & 0xFFFF for slot in bags),
        "rejected": sum(error["sample"] != NO_SAMPLE for error in reading.errors),
        "strays": reading.strays, "over_credit": 0}
    return reading, cycles


def compare(reading: Reading, slots, segments, errors) -> None:
    for got, want in zip(slots, reading.slots, strict=True):
        assert got | ({"owner": None} if want["owner"] is None else {}) == want
    for got, want in zip(segments, reading.segments, strict=True):
        # Words of other items, and behind the packet, do not matter.
        ours = (1 << 64 * want["size"]) - 1 << 64 * want["first"]
        assert got | {"words": got["words"] & ours} == want | {"words": want["words"] & ours}
    assert errors == reading.errors
    # Each bag of a slot is whole: its head, its words, its end.
    bags = iter(segments)
    for slot in slots:
        if slot["bag"]:
            parts = [next(bags)]
            while not parts[-1]["tail"]:
                parts.append(next(bags))
            assert [part["head"] for part in parts] == [1, *[0] * (len(parts) - 1)]
            first = parts[0]["words"] >> 64 * parts[0]["first"]
            assert (first & 0xFFFF, first >> 36 & 0xFFF) == (
                slot["key"]["row"] & 0xFFFF, slot["key"]["table"])
    assert next(bags, None) is None


@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.3, 0.0), (0.0, 0.5), (0.3, 0.3)])
def test_good_samples_pass_whole(stalls):
    rng = random.Random(1)
    items = [item for number in range(40)
             for item in good_sample(number << 20, rng.choice([1, 2, 5, 9]), rng)]
    reading, _ = run(packed(items, rng), stalls)
    assert not reading.errors and len(reading.segments) > 100


def test_a_nic_with_bags_passes_samples_without_them():
    rng = random.Random(2)
    items = [[head(1, 3)], [key(0, 1, end=False)], [key(1, 7)], [empty()],
             [head(2, 1, ends=True)], [empty()], *good_sample(3, 2, rng)]
    reading, _ = run(packed(items, rng))
    assert [slot["sample"] for slot in reading.slots if slot["ends"]] == [2]


LONGEST = 2 * (MOST - 1)
BAD = {
    "a table that is not written": ([[head(7, 2)], bag(12, [1]), [empty()]], Status.TABLE),
    "a table that is not valid": ([[head(7, 1)], bag(5, [1] * 30)], Status.TABLE),
    "an owner beyond the cluster": ([[head(7, 1)], bag(6, [1])], Status.TABLE),
    "vectors longer than a place": ([[head(7, 1)], bag(13, [1])], Status.TABLE),
    "split by columns": ([[head(7, 1)], bag(4, [1])], Status.KIND),
    "rows with several owners": ([[head(7, 1)], bag(7, [1])], Status.KIND),
    "a bag of a table that pools here": ([[head(7, 2)], bag(0, [1]), [empty()]], Status.KIND),
    "weights of a table that pools here": ([[head(7, 1)], bag(0, [1], 0, [5])], Status.KIND),
    "a key of a table that pools there": ([[head(7, 2)], [key(8, 1)], bag(8, [1])], Status.KIND),
    "a bag of keys of both": ([[head(7, 2)], [key(0, 1, end=False)], [key(8, 1)]], Status.KIND),
    "a bag in a bag of keys": ([[head(7, 3)], [key(0, 1, end=False)], bag(8, [1]), [key(0, 2)]],
                               Status.KIND),
    "the last row is beyond": ([[head(7, 1)], bag(8, [1] * 60 + [50])], Status.ROW),
    "the first row is beyond": ([[head(7, 2)], bag(8, [50, *[1] * 20]), bag(8, [3])], Status.ROW),
    "a wide row is beyond": ([[head(7, 1)], bag(9, [5, 1 << 33], 1)], Status.ROW),
    "a wide row of a small table": ([[head(7, 1)], bag(8, [1 << 32], 1)], Status.ROW),
    "bits above a row": ([[head(7, 1)], bag(9, [5, 1 << 36 | 3], 1)], Status.ROW),
    "no keys": ([[head(7, 2)], bag(8, []), bag(8, [1])], Status.SAMPLE_SIZE),
    "too many keys": ([[head(7, 1)], bag(8, [1] * (LONGEST + 1))], Status.SAMPLE_SIZE),
    "too many wide keys": ([[head(7, 1)], bag(9, [1] * MOST, 1)], Status.SAMPLE_SIZE),
    "a part": ([[head(7, 1)], bag(8, [1], part=1)], Status.SAMPLE_SIZE),
    "a part of 128": ([[head(7, 1)], bag(8, [1], part=128)], Status.SAMPLE_SIZE),
    "more to come": ([[head(7, 1)], bag(8, [1], more=1)], Status.SAMPLE_SIZE),
    "too many segments": ([[head(7, 5)], *[bag(8, [1] * 250)] * 5], Status.SAMPLE_SIZE),
    "too many slots": ([[head(7, LARGEST + 1)], *[bag(8, [1, 2])] * (LARGEST + 1)],
                       Status.SAMPLE_SIZE),
    "an open bag of keys": ([[head(7, 2)], bag(8, [1]), [key(0, 1, end=False)]],
                            Status.SAMPLE_SIZE),
    "a slot is missing": ([[head(7, 3)], bag(8, [1] * 30), bag(9, [1], 1)], Status.TRUNCATED),
    "two faults, one answer": ([[head(7, 2)], bag(8, [1] * 20 + [51]), bag(12, [3])], Status.ROW),
    "bags without a sample": ([bag(8, [1] * 30), [key(0, 1)], bag(0, [1])], Status.NO_SAMPLE),
    "more bags than announced": ([[head(7, 1)], bag(8, [50]), bag(8, [1] * 30)], Status.ROW),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_sample_is_answered_once(name):
    """Send a bad sample between good samples: it causes one error (or one for its strays)."""
    items, status = BAD[name]
    rng = random.Random(name)
    before, after = good_sample(1, 6, rng), good_sample(2, 9, rng)
    reading, _ = run(packed(before + items + after, rng), (0.2, 0.3), seed=len(name))
    named = [error["status"] for error in reading.errors if error["sample"] == 7]
    if status == Status.NO_SAMPLE:
        assert not named and [error["status"] for error in reading.errors] == [status]
    else:
        assert named == [status]
    assert {slot["sample"] for slot in reading.slots} == {1, 2}


def test_a_register_sets_the_longest_vector():
    """A peer and the GPU cannot send longer vectors, so their bags are rejected."""
    items = [[head(7, 1)], bag(8, [1]), [head(8, 1)], bag(9, [1], 1)]
    reading, _ = run(packed(items, random.Random(3)), vector_beats=2)
    assert [(error["sample"], error["status"]) for error in reading.errors] == [(7, Status.TABLE)]
    assert [(slot["sample"], slot["final_beat"]) for slot in reading.slots] == [(8, 1)]


@pytest.mark.parametrize("words, status", [
    (1, Status.TRUNCATED), (9, Status.TRUNCATED), (28, Status.TRUNCATED), (29, 0)])
@pytest.mark.parametrize("later", [0, 1])
def test_a_packet_that_ends_in_a_bag(words, status, later):
    """The sample is rejected, and goes on in the next packet, which begins with a record."""
    rng = random.Random(words)
    cut = bag(8, [7] * 55)
    rest = good_bag(rng) if later else []
    packets = [*packed(good_sample(1, 3, rng), rng),
               ([head(7, 1 + later), *cut[:words]], 20), (rest or [empty()], 21)]
    packets += packed(good_sample(2, 4, rng), rng, 30)
    reading, _ = run(packets, (0.2, 0.2))
    assert [error["status"] for error in reading.errors if error["sample"] == 7] == (
        [status] if status else [])
    assert reading.strays == (not later)
    assert {slot["sample"] for slot in reading.slots} == {1, 2, *([] if status else [7])}


@pytest.mark.parametrize("keys, long", [(LONGEST, 0), (LONGEST + 1, 1)])
def test_a_bag_that_is_too_long_takes_the_rest_of_its_packet(keys, long):
    rng = random.Random(keys)
    after = [word for item in good_sample(8, 2, rng) for word in item]
    packets = [*packed(good_sample(1, 2, rng), rng),
               ([head(7, 1), *bag(8, [1] * keys), *after], 4), *packed(good_sample(9, 3, rng), rng)]
    reading, _ = run(packets)
    assert [(e["sample"], e["status"]) for e in reading.errors] == (
        [(7, Status.SAMPLE_SIZE)] if long else [])
    assert {slot["sample"] for slot in reading.slots} == {1, 9, *([] if long else [7, 8])}


@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.0, 0.6)])
def test_segments_of_a_sample_are_bounded(stalls):
    """A sample may fill the store. It waits until earlier segments leave, but not for its own."""
    rng, config = random.Random(1), LARGE.with_fields(bag_segments=32)

    def full(number: int, segments: int) -> list[int]:
        return [head(number, segments + 2), key(0, 1), *bag(8, [1]) * segments, key(0, 1)]

    samples = [full(1, 32), full(2, 32), full(7, 33), full(3, 32), full(7, 60), full(4, 32),
               [head(7, 3), *full(7, 33)[1:]], [head(5, 1), *bag(8, [2] * 250)]]
    packets = [(words, 1) for words in samples] + packed(good_sample(6, 9, rng), rng)
    reading, _ = run(packets, stalls, config)
    assert [slot["sample"] for slot in reading.slots if slot["last"]] == [1, 2, 3, 4, 7, 5, 6]
    assert [error["status"] for error in reading.errors] == [
        Status.SAMPLE_SIZE, Status.SAMPLE_SIZE, Status.NO_SAMPLE]


@pytest.mark.parametrize("stalls", [(0.0, 0.0), (0.3, 0.3)])
def test_good_and_bad_mixed(stalls):
    rng = random.Random(8)
    items: Items = []
    for number in range(50):
        items += good_sample(100 + number, rng.randrange(1, 12), rng) if rng.random() < 0.5 else (
            rng.choice(list(BAD.values()))[0])
    items += good_sample(5, 3, rng)
    reading, _ = run(packed(items, rng), stalls, seed=9)
    assert len({error["status"] for error in reading.errors}) >= 5


@pytest.mark.parametrize("seed", range(3))
def test_noise_never_hangs(seed):
    """Send random words in random packets: checker and model agree, good samples pass behind."""
    rng = random.Random(seed)
    words = [word for _ in range(150) for word in rng.choice([
        [rng.getrandbits(64)], [head(rng.randrange(9), rng.randrange(4))], good_bag(rng),
        good_bag(rng)[:rng.randrange(1, 9)], [key(rng.choice(KEYS), rng.randrange(60))],
        [empty()]])]
    packets = []
    while words:
        length = rng.randrange(1, 100)
        packets.append((words[:length], len(packets)))
        words = words[length:]
    packets += packed(good_sample(77, 4, rng) + good_sample(78, 4, rng), rng, 1000)
    reading, _ = run(packets, (0.1, 0.1), seed=seed)
    assert {77, 78} <= {slot["sample"] for slot in reading.slots}


@pytest.mark.parametrize("bags, least", [
    (DCNV2_BAGS, 5.0), ((20,) * 13, 8.3), ((100,) * 5, 12.5), ((1,) * 26, 0.8)])
def test_rate(bags, least):
    """One segment or record a cycle, in keys per cycle: a sample has a record for its head too."""
    config, count = LARGE.with_fields(bag_segments=1024), 12
    sample = [[head(1, len(bags))], *[bag(8, ([*range(40)] * 3)[:keys]) for keys in bags]]
    packets: list[tuple[list[int], int]] = [([], 1)]
    for item in sample * count:
        if len(packets[-1][0]) + len(item) > config.bag_words:
            packets.append(([], 1))
        packets[-1][0].extend(item)
    reading, cycles = run(packets, config=config)
    loading = config.tables + 5 * len(TABLES)
    # The segments of the last sample leave after its end.
    used = cycles - loading - max(LATENCIES) - len(reading.segments) // count
    assert not reading.errors and len(reading.segments) + count >= used - 9
    assert sum(bags) * count / used > least


def test_latency():
    """From the beat of the last word to the first slot and the first segment of its sample."""
    dut, cycles = made(QueryChecker, CONFIG), {}

    async def feed(ctx):
        for port in (dut.o, dut.segments):
            ctx.set(port.ready, 1)
        for beat in beats([head(1, 2), *bag(8, [1] * 40)], 1) + beats(bag(8, [1]), 1):
            await send_at_once(ctx, dut.i, beat)
            await ctx.tick().repeat(20)

    async def watch(ctx):
        sent = 0
        async for _, _, come, slot, segment in ctx.tick().sample(
                dut.i.valid, dut.o.valid, dut.segments.valid):
            sent = 0 if come else sent + 1
            if slot:
                cycles.setdefault("slot", sent)
            if segment:
                cycles.setdefault("segment", sent)

    simulate(dut, descriptor_writer(dut, TABLES, NODE, NODES, then=feed), background=[watch])
    assert [cycles["slot"], cycles["segment"]] == LATENCIES


class BagFlood(Flood):
    """Packets offered without regard to credits; also keeps the segments."""

    def __init__(self, dut: QueryChecker):
        super().__init__(dut)
        self.segments: list[dict] = []
        self.packets: list[list[int]] = []

    async def offer_packet(self, ctx, words: list[int], rng: random.Random) -> None:
        self.packets.append(words)
        for beat in beats(words, 5, rng):
            await self.offer(ctx, beat)

    def takers(self, when, chance: float, rng: random.Random):
        return [*super().takers(when, chance, rng),
                self.taker(when, chance, rng, self._dut.segments, self.segments)]

    def compare(self) -> Reading:
        reading, beat, pending = Reading(
            TABLES, NODE, NODES, CONFIG.sample_slots, None, MOST), iter(self.sent), False
        for words in self.packets:
            lost = [next(beat)[1] for _ in range(-(-len(words) // 8))]
            kept = words[:8 * lost.index(True)] if True in lost else words
            assert lost == sorted(lost), "the rest of a packet is lost too"
            reading.read_packet(kept, 5, pending, whole=kept == words)
            pending = lost[-1] or (pending and not kept)
        if pending:
            reading.lose(5)
        compare(reading, self.slots, self.segments, self.errors)
        return reading


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(4))
def test_gaps_between_beats_never_join_samples(seed):
    """The buffer overflows while it drains: gaps inside bags, inside samples and between them."""
    rng = random.Random(seed)
    dut = made(QueryChecker, CONFIG)
    flood = BagFlood(dut)
    items = [item for number in range(100)
             for item in good_sample(number, rng.choice([2, 4, 9]), rng, 90)]

    async def feed(ctx):
        for words, _ in packed(items, rng):
            await flood.offer_packet(ctx, words, rng)
            await ctx.tick().repeat(rng.choice([1, 5, 9, 40]))
        await flood.settle(ctx)
        for words, _ in packed(good_sample(500, 9, rng) + good_sample(501, 4, rng), rng):
            await flood.offer_packet(ctx, words, rng)
            await ctx.tick().repeat(90)
        await flood.settle(ctx)

    simulate(dut, descriptor_writer(dut, TABLES, NODE, NODES, then=feed),
             background=flood.takers(lambda: True, 0.35, rng))
    reading = flood.compare()
    named = [e for e in reading.errors if e["status"] == Status.CREDIT and e["sample"] < 500]
    assert len(named) >= 2 and len(reading.segments) > 100 and flood.lost > 20
    assert {500, 501} <= {slot["sample"] for slot in flood.slots}
