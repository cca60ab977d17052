"""SegmentSplit: every item of every packet, against a splitter in Python, and its rate."""

import random

import pytest

from rtl.bags.splitter import SegmentSplit
from rtl.formats import BagHead, RecordKind, words_of
from tests.rtl.bags.words import DCNV2_BAGS, bag, beats_of_packet, record, segments_of
from tests.support import made, receiver, sender, simulate

MOST = 176


def random_packet(rng: random.Random, plain: bool) -> list[int]:
    """Return a packet of records and bags; some packets end within a bag."""
    words: list[int] = []
    while len(words) < rng.randrange(1, 120):
        if plain and rng.random() < 0.4:
            words += record(rng)
        else:
            keys = rng.choice([1, 1, 2, 3, 7, 14, 15, 16, 40, 0, rng.randrange(1, 90)])
            words += bag(rng, keys, query=plain, wide=rng.random() < 0.3,
                         weighted=rng.random() < 0.3)
    if rng.random() < 0.3:
        words = words[:rng.randrange(1, len(words) + 1)]
    return words[:8 * 22]


def split(words: list[list[int]], plain: bool, gap: float, stall: float, seed: int) -> None:
    dut, taken = made(SegmentSplit, 5, MOST, plain=plain), []
    beats = [beat for number, each in enumerate(words)
             for beat in beats_of_packet(each, number % 32)]
    expected = [item for number, each in enumerate(words)
                for item in segments_of(each, number % 32, MOST, plain)]
    simulate(dut, sender(dut.i, beats, stall=gap, seed=seed),
             receiver(dut.o, taken, len(expected), stall=stall))
    assert taken == expected


@pytest.mark.parametrize("plain, gap, stall", [
    (True, 0.0, 0.3), (True, 0.5, 0.0), (False, 0.0, 0.0), (False, 0.3, 0.5)])
def test_items_of_random_packets(plain, gap, stall):
    rng = random.Random(plain)
    split([random_packet(rng, plain) for _ in range(40)], plain, gap, stall, 3)


@pytest.mark.parametrize("keys, wide, weighted", [
    (350, 0, 0), (351, 0, 0), (175, 1, 0), (176, 1, 0), (174, 0, 1), (175, 0, 1), (4096, 0, 0),
    (8192, 1, 1), (0xFFFF, 1, 1), (0xFFFF, 0, 0)])
def test_longest_bag(keys, wide, weighted):
    """A bag of more words takes the rest of its packet; the next packet begins anew."""
    rng = random.Random(keys)
    words = bag(rng, keys, query=False, wide=wide, weighted=weighted)
    assert (len(words) > MOST) == (words_of(keys, wide, weighted) >= MOST)
    split([words[:MOST], bag(rng, 3, query=False)], False, 0.0, 0.0, 1)


def test_a_sample_with_ends_is_no_bag():
    """``ends`` of a SAMPLE record is the bit that marks a bag in a KEY_END record."""
    rng = random.Random(4)
    ends = [1 << 32 | int(RecordKind.SAMPLE) << 48 | 1 << 50]
    split([[*ends, *record(rng), *bag(rng, 5), *ends]], True, 0.0, 0.0, 1)


def test_a_fresh_beat_ends_the_open_bag():
    """After lost beats, the words that arrive begin a new item."""
    rng, taken = random.Random(5), []
    dut = made(SegmentSplit, 5, MOST, plain=True)
    first, later = bag(rng, 60), bag(rng, 9)
    beats = [*beats_of_packet(first, 1)[:2], *beats_of_packet(later, 2, fresh=1)]
    expected = [*segments_of(first, 1, MOST)[:2], *segments_of(later, 2, MOST)]
    simulate(dut, sender(dut.i, beats), receiver(dut.o, taken, len(expected)))
    assert taken == expected


@pytest.mark.parametrize("bags, least", [
    ((100,) * 12, 13.5), ((20,) * 60, 8.7), ((16,) * 60, 7.8), (DCNV2_BAGS * 4, 5.0)])
def test_rate(bags, least):
    """Rows per cycle, of bags back to back in packets of 22 beats."""
    rng, taken, packets = random.Random(6), [], [[]]
    for keys in bags:
        words = bag(rng, keys, query=False)
        if len(packets[-1]) + len(words) > MOST:
            packets.append([])
        packets[-1] += words
    dut = made(SegmentSplit, 5, MOST, plain=False)
    beats = [beat for words in packets for beat in beats_of_packet(words, 0)]
    items = sum(len(segments_of(words, 0, MOST, False)) for words in packets)
    cycles = simulate(dut, sender(dut.i, beats), receiver(dut.o, taken, items))
    latency = SegmentSplit.LATENCY["beat", "its first item"]
    assert cycles == items + latency
    assert sum(bags) / items > least


def test_latency_and_idle():
    rng, cycles = random.Random(7), []
    dut = made(SegmentSplit, 5, MOST, plain=False)
    beats = beats_of_packet(bag(rng, 20, query=False), 3)

    async def watch(ctx):
        ctx.set(dut.o.ready, 1)
        assert ctx.get(dut.idle)
        for cycle in range(20):
            if ctx.get(dut.o.valid):
                cycles.append(cycle)
            await ctx.tick()
        assert ctx.get(dut.idle)

    simulate(dut, watch, sender(dut.i, beats))
    first = SegmentSplit.LATENCY["beat", "its first item"]
    assert cycles == [first, first + 1]


@pytest.mark.parametrize("most", [1, 1121, True, 8.0])
def test_sizes(most):
    with pytest.raises(ValueError, match="most must be between 2 and 1120"):
        SegmentSplit(1, most)


def test_head_fields_are_at_the_places_of_other_records():
    """A head's table is where a query and a lookup have it; the landing follows."""
    assert BagHead["table"].offset == 36 and BagHead["landing"].offset == 48
