"""BagRepeats: a bag repeats exactly an equal bag at its position of the previous sample."""

import random
from dataclasses import dataclass, field

import pytest

from rtl.config import preset
from rtl.formats import END_SAMPLE, RecordKind, words_of
from rtl.query import BagRepeats
from tests.rtl.bags.test_word_ring import segments, stored
from tests.rtl.bags.words import DCNV2_BAGS, bag
from tests.support import a_bit_apart, counts_of, made, quiet_while_idle, receiver, sender, simulate

STALLS = [(0.0, 0.0, 0.0), (0.3, 0.3, 0.3), (0.0, 0.6, 0.0), (0.0, 0.0, 0.6), (0.6, 0.0, 0.0)]

Bag = list[int] | int | None
"""Words of a bag that pools at its owner, keys of another bag, or an empty bag."""


@dataclass
class Sample:
    bags: list[Bag]
    number: int
    step: int = 7
    ends: bool = False


def head_of(words: list[int]) -> tuple:
    head = words[0]
    return head & 0xFFFF, head >> 16 & 3, head >> 36 & 0xFFF


@dataclass
class Memory:
    """Reference of the block: the bags of the previous sample that are remembered.

    Members: ``found``, for each bag that pools at its owner, whether it repeats, and is remembered.
    """

    words: int
    positions: int
    found: list[tuple[bool, bool]] = field(default_factory=list)
    _old: dict[int, tuple] = field(default_factory=dict)
    _last: tuple = ()

    def add(self, sample: Sample) -> None:
        if self._last != (sample.step, sample.number):
            self._old = {}
        old, new = self._old, {}
        for position, words in enumerate(sample.bags):
            if isinstance(words, list):
                size = len(words) - 1
                used = sum(len(each[1]) for where, each in old.items() if where >= position)
                used += sum(len(each[1]) for each in new.values())
                content = head_of(words), stored(words)
                kept = position < self.positions and used + size <= self.words
                self.found.append((old.get(position) == content, kept))
                if kept:
                    new[position] = content
        self._old = {} if sample.ends else new
        self._last = sample.step, sample.number + 1 & 0xFFFF_FFFF


def slots_of(rng: random.Random, sample: Sample) -> list[dict]:
    """Return the checked slots of a sample."""
    slots = []
    for words in sample.bags:
        common = {"sample": sample.number, "step": sample.step, "ends": int(sample.ends), "last": 0,
                  "owner": rng.getrandbits(8), "mean": rng.getrandbits(1),
                  "final_beat": rng.getrandbits(4)}
        if words is None:
            slots.append(common | {"key": {"row": 0, "table": 0}, "kind": int(RecordKind.EMPTY),
                                   "mine": 0, "bag": 0})
        elif isinstance(words, list):
            keys, _, table = head_of(words)
            slots.append(common | {"key": {"row": keys, "table": table}, "bag": 1,
                                   "kind": int(RecordKind.KEY_END), "mine": rng.getrandbits(1)})
        else:
            slots += [common | {
                "key": {"row": rng.getrandbits(36), "table": rng.getrandbits(12)}, "bag": 0,
                "kind": int(RecordKind.KEY_END if k == words - 1 else RecordKind.KEY),
                "mine": rng.getrandbits(1)} for k in range(words)]
    slots[-1]["last"] = 1
    return slots


def expected_of(slots: list[list[dict]], memory: Memory, positions: int):
    """Return the slots that leave, and the numbers of the bags that repeat no bag."""
    found, out, sent, number = iter(memory.found), [], [], 0
    for of in slots:
        position = 0
        for slot in of:
            repeat, kept = next(found) if slot["bag"] else (False, False)
            if slot["bag"]:
                sent += [number] * (not repeat)
                number += 1
            o = dict(slot) | {"repeat": int(repeat), "kept": int(kept and not repeat),
                              "position": position if kept or repeat else None}
            if repeat:
                o |= {"kind": int(RecordKind.EMPTY), "bag": 0, "mine": 0}
            out.append(o)
            position = min(position + (slot["kind"] != RecordKind.KEY), positions)
    return out, sent


def run(samples, *, words=256, positions=8, stalls=STALLS[0], seed=0, enable=1):
    """Run samples; compare the slots and segments; return the verdicts, counters and cycles."""
    rng = random.Random(seed)
    config = preset("tiny").with_fields(owner_bags=16, repeat_words=words, repeat_vectors=positions)
    dut, memory = made(BagRepeats, config), Memory(words, positions)
    for sample in samples:
        memory.add(sample)
    if not enable:
        memory.found = [(False, False)] * len(memory.found)
    slots = [slots_of(rng, sample) for sample in samples]
    bags = [segments(rng, words) for sample in samples for words in sample.bags
            if isinstance(words, list)]
    expected, sent = expected_of(slots, memory, positions)
    wanted = [each for number in sent for each in bags[number]]
    out: list[dict] = []
    left: list[dict] = []
    counters: dict[str, int] = {}

    async def begin(ctx):
        ctx.set(dut.enable, enable)

    async def end(ctx):
        while len(out) < len(expected) or len(left) < len(wanted) or not ctx.get(dut.idle):
            await ctx.tick()
        for _ in range(8):
            assert not ctx.get(dut.o.valid) and not ctx.get(dut.bags.valid)
            await ctx.tick()
        counters.update(counts_of(ctx, dut.counters))

    cycles = simulate(
        dut, begin, sender(dut.slots, [each for of in slots for each in of], stall=stalls[0]),
        sender(dut.segments, [each for of in bags for each in of], stall=stalls[0], seed=1),
        receiver(dut.o, out, len(expected), stall=stalls[1], seed=2),
        receiver(dut.bags, left, len(wanted), stall=stalls[2], seed=3), end,
        background=[quiet_while_idle(
            dut.idle, [dut.slots.valid, dut.segments.valid],
            [dut.o.valid & dut.o.ready, dut.bags.valid & dut.bags.ready])], limit=40_000)
    for slot, of in zip(out, expected, strict=True):
        if of["position"] is None:
            of["position"] = slot["position"]
        assert slot == of
    assert left == wanted
    keys = [each["key"]["row"] for of in slots for each in of if each["bag"]]
    assert counters == {
        "bags": len(bags), "repeats": sum(repeat for repeat, _ in memory.found),
        "repeated_keys": sum(number for number, (repeat, _) in zip(keys, memory.found) if repeat),
        "beyond": enable * sum(not kept for _, kept in memory.found)}
    return memory.found, counters, cycles


def neighbours(rng: random.Random, count: int, bags: int, *, again=0.7, longest=30, gap=0.05,
               step=0.05) -> list[Sample]:
    """Return samples most of whose bags repeat, are empty, or differ from equal bags in a bit."""
    samples, number, at = [], 0xFFFF_FFF0, 7
    before: list[Bag] = []
    for _ in range(count):
        now: list[Bag] = []
        for position in range(bags if rng.random() < 0.8 else rng.randint(1, bags)):
            old = before[position] if position < len(before) else None
            if isinstance(old, list) and rng.random() < again:
                words = list(old)
                if rng.random() < 0.15:
                    words[rng.randrange(1, len(words))] ^= 1 << rng.randrange(64)
                if rng.random() < 0.1:
                    words[0] ^= 1 << rng.choice([36, 40, 47])  # its table
                now.append(words)
            else:
                now.append(rng.choice([None, rng.randint(1, 3)] + 6 * [bag(
                    rng, rng.choice([1, 2, 3, rng.randint(1, longest)]),
                    wide=int(rng.random() < 0.3), weighted=int(rng.random() < 0.3))]))
        before, gone = now, rng.random()
        number += 1 + (gone < gap)
        at += gone > 1 - step
        samples.append(Sample(now, number & 0xFFFF_FFFF, at))
    return samples


@pytest.mark.parametrize("stalls", STALLS)
@pytest.mark.parametrize("bags", [1, 2, 3, 6])
def test_each_bag_that_equals_its_predecessor_repeats(stalls, bags):
    rng = random.Random(bags)
    found, counters, _ = run(neighbours(rng, 150 // bags, bags), stalls=stalls)
    assert 0.25 < counters["repeats"] / len(found) < 0.75


@pytest.mark.parametrize("words, positions, bags", [(64, 8, 6), (128, 4, 7), (64, 2, 4)])
def test_bags_beyond_the_sizes_are_looked_up_and_counted(words, positions, bags):
    rng = random.Random(words + positions)
    found, counters, _ = run(neighbours(rng, 60, bags, longest=60), words=words,
                             positions=positions, stalls=STALLS[1])
    assert 0 < counters["beyond"] < len(found) and counters["repeats"] > 20


def test_a_ring_that_is_exactly_full():
    rng = random.Random(5)
    bags: list[Bag] = [bag(rng, 100), bag(rng, 28)]
    found, _, _ = run([Sample(bags, number) for number in range(3)], words=64)
    # The words of a sample fit only where the sample before has no words.
    assert found == [(False, True), (False, True), (True, False), (True, True), (False, True),
                     (True, False)]


def test_disabled():
    run(neighbours(random.Random(1), 20, 3), enable=0)


def repeats(*samples: Sample) -> list[int]:
    return [int(repeat) for repeat, _ in run(list(samples))[0]]


def test_nothing_repeats_across_a_step_a_share_or_a_rejected_sample():
    """A share ends with a slot; a rejected sample leaves its number unused."""
    words: Bag = bag(random.Random(2), 5)
    assert repeats(Sample([words], 1), Sample([words], 2), Sample([words], 3, step=8),
                   Sample([words], 4, step=8)) == [0, 1, 0, 1]
    assert repeats(Sample([words], 1), Sample([words], 3), Sample([words], 4)) == [0, 0, 1]
    assert repeats(Sample([words], 1), Sample([None], END_SAMPLE, ends=True), Sample([words], 1),
                   Sample([words], 2), Sample([None], 3, ends=True), Sample([words], 4)) == [
                       0, 0, 1, 0]


def test_steps_and_numbers_are_compared_in_all_their_bits():
    words: Bag = bag(random.Random(2), 5)
    samples = [each for step, number in [
        *((step, 8) for step in a_bit_apart(9)), *((9, number) for number in a_bit_apart(8, 32)),
        (9, 8)] for each in (Sample([words], 7, step=9), Sample([words], number, step=step))]
    assert sum(repeats(*samples)) == 1


def test_an_empty_bag_is_not_repeated():
    words: Bag = bag(random.Random(3), 4)
    assert repeats(Sample([words, None], 1), Sample([None, words], 2), Sample([words, words], 3),
                   Sample([words, 2, words], 4), Sample([words, words, words], 5)) == [
                       0, 0, 0, 1, 1, 0, 1, 0, 1]


def test_a_shorter_sample_forgets_the_rest():
    words: Bag = bag(random.Random(4), 4)
    assert repeats(Sample([words] * 3, 1), Sample([words], 2), Sample([words] * 3, 3)) == [
        0, 0, 0, 1, 1, 0, 0]


@pytest.mark.parametrize("keys", [1, 2, 5, 13])
def test_each_bit_of_keys_and_weights_counts(keys):
    words = bag(random.Random(keys), keys, weighted=1)
    bits = [*range(16), *range(36, 48)]
    heads = [[words[0] ^ 1 << bit, *words[1:]] for bit in bits]
    heads = [each for each in heads if words_of(each[0] & 0xFFFF, 0, 1) == len(words) - 1]
    others = [[*words[:at], words[at] ^ 1 << bit, *words[at + 1:]]
              for at in range(1, len(words)) for bit in (0, 31, 32, 63)]
    samples = [Sample([each], number) for number, each in enumerate(
        each for other in heads + others for each in (words, other))]
    unused = sum(stored(other) == stored(words) for other in others)
    found = repeats(*samples)
    assert sum(found[1::2]) == unused == (4 if keys & 1 else 0)


def test_heads_of_equal_words():
    """Bags differ only in their number of keys, in the width of rows, or in their weights."""
    rng = random.Random(6)
    words = bag(rng, 2, weighted=1)
    others = [words[0] - 1, words[0] ^ 3 << 16]  # of 1 key; wide rows without weights
    samples = [[head, *words[1:]] for other in others for head in (words[0], other)]
    assert repeats(*(Sample([each], number) for number, each in enumerate(samples))) == [0] * 4


def test_one_segment_a_cycle():
    """More than 4 rows a cycle, whether bags repeat or not."""
    rng = random.Random(9)
    sample: list[Bag] = [bag(rng, keys) for keys in DCNV2_BAGS]
    for bags in ([sample] * 8, [[bag(rng, keys) for keys in DCNV2_BAGS] for _ in range(8)]):
        samples = [Sample(each, number) for number, each in enumerate(bags)]
        _, _, cycles = run(samples, words=1024, positions=32)
        count = sum(len(segments(random.Random(0), each)) for each in sample
                    if isinstance(each, list))
        assert cycles <= 8 * (count + len(DCNV2_BAGS)) + 40
        assert cycles < 8 * sum(DCNV2_BAGS) / 4


def test_latency():
    rng, dut = random.Random(4), made(BagRepeats, preset("tiny").with_fields(
        owner_bags=16, repeat_words=256, repeat_vectors=8))
    words, came = bag(rng, 1), []

    async def watch(ctx):
        ctx.set(dut.o.ready, 1)
        for cycle in range(16):
            if ctx.get(dut.o.valid):
                came.append(cycle)
            await ctx.tick()

    simulate(dut, watch, sender(dut.slots, slots_of(rng, Sample([words], 1))),
             sender(dut.segments, segments(rng, words)), receiver(dut.bags, [], 1))
    assert came == [BagRepeats.LATENCY["slot, or tail of its bag", "the same slot"]]


def test_bad_configurations():
    with pytest.raises(TypeError, match="config must be a NicConfig"):
        BagRepeats(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="repeat_words must be above 0, with owner_bags, not 0"):
        BagRepeats(preset("tiny").with_fields(owner_bags=16))
    with pytest.raises(ValueError, match="repeat_words must be above 0, with owner_bags, not 64"):
        BagRepeats(preset("tiny").with_fields(repeat_words=64))
