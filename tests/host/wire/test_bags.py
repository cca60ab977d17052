"""Words of bags: queries, lists and vectors, decoded with plain integers."""

import re
from dataclasses import replace

import numpy as np
import pytest

from host.dlrm.dlrm import pooled_reference
from host.dlrm.rows import row_values
from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import Samples
from host.wire.bags import (
    BagList,
    bag_keys,
    bag_queries,
    bag_vectors,
    bag_words,
    parse_bags,
    pooled_bags,
)
from host.wire.packets import (
    pack_records,
    parse_header,
    payload_records,
    query_packets,
    query_records,
)
from rtl.formats import BagHead, Opcode, RecordKind, words_of
from tests.host.test_samples import random_samples

WIDE = (1 << 32) + 1


def random_bags(rng: np.random.Generator, bags: int) -> BagList:
    """Return bags of 1 to 40 keys, half of them wide, and half of them weighted."""
    wide = rng.random(bags) < 0.5
    lengths = rng.integers(1, 41, bags)
    most = np.repeat(np.where(wide, 1 << 36, 1 << 32), lengths)
    weighted = rng.random(bags) < 0.5
    weights = np.where(np.repeat(weighted, lengths), rng.standard_normal(lengths.sum()), 1)
    return BagList(rng.integers(0, 4096, bags), lengths, rng.integers(0, most),
                   rng.integers(0, 1 << 16, bags), wide,
                   *((weights.astype(np.float32), weighted) if weighted.any() else ()))


def items_of(words: list[int]) -> list[tuple]:
    """Return the items of query words: sample heads, slots of a key, and bags with their rows and
    the bits of their weights."""
    found, at = [], 0
    while at < len(words):
        word = words[at]
        kind, table = word >> 48 & 3, word >> 36 & 0xFFF
        at += 1
        if kind == RecordKind.SAMPLE:
            found.append(("sample", word & 0xFFFFFFFF, word >> 32 & 0xFFFF))
        elif kind == RecordKind.KEY_END and word >> 50 & 1:
            assert not word >> 18 & 0x3FFFF and not word >> 51
            keys, wide, rows = word & 0xFFFF, word >> 16 & 1, []
            weighted, weights, size = word >> 17 & 1, [], words_of(keys, wide, 0)
            assert at + words_of(keys, wide, weighted) <= len(words), "a packet ends in a bag"
            for each in words[at:at + size]:
                rows += [each] if wide else [each & 0xFFFFFFFF, each >> 32]
            at += size
            for each in words[at:at + (keys + 1) // 2] if weighted else []:
                weights += [each & 0xFFFFFFFF, each >> 32]
            assert not any(rows[keys:]) and not any(weights[keys:])
            found.append(("bag", table, bool(wide), rows[:keys], weights[:keys]))
            at += (keys + 1) // 2 * weighted
        else:
            assert not word >> 50
            found.append(("slot", kind, table, word & (1 << 36) - 1))
    return found


def expected_items(samples: Samples, first: int, owner_pooled: np.ndarray,
                   weighted: tuple[int, ...] = ()) -> list[tuple]:
    """Return the items of ``samples``, made sample by sample."""
    found, at = [], 0
    for number, lengths in enumerate(samples.bag_lengths.tolist()):
        slots = []
        for keys in lengths:
            table = int(samples.tables[at]) if keys else 0
            rows, weights = samples.rows[at:at + keys].tolist(), []
            if table in weighted and samples.weights is not None:
                weights = samples.weights[at:at + keys].view(np.uint32).tolist()
            at += keys
            if not keys:
                slots.append(("slot", RecordKind.EMPTY, 0, 0))
            elif owner_pooled[table]:
                slots.append(("bag", table, bool(owner_pooled[table] > 1 << 32), rows,
                              weights))
            else:
                slots += [("slot", RecordKind.KEY_END if key == keys - 1 else RecordKind.KEY,
                           table, row) for key, row in enumerate(rows)]
        found += [("sample", first + number & 0xFFFFFFFF, len(slots)), *slots]
    return found


@pytest.mark.parametrize("bags", [0, 1, 2, 500])
def test_words_read_back_as_their_bags(bags):
    given = random_bags(np.random.default_rng(bags), bags)
    words = bag_words(given)
    assert len(words) == sum(1 + words_of(*map(int, each)) for each in zip(
        given.lengths, given.wide, given.with_weights))
    read = parse_bags(words)
    for name in ("tables", "lengths", "rows", "landings", "wide", "with_weights", "weights"):
        assert np.array_equal(getattr(read, name), getattr(given, name)), name


def test_words_of_bags():
    bags = BagList(np.array([5, 6]), np.array([3, 2]), np.array([1, 2, 3, 4, 1 << 35]),
                   np.array([7, 65535]), np.array([False, True]))
    assert [int(word) for word in bag_words(bags)] == [
        3 | 5 << 36 | 7 << 48, 1 | 2 << 32, 3, 2 | 1 << 16 | 6 << 36 | 65535 << 48, 4, 1 << 35]
    bags = replace(bags, weights=np.array([1, -2, 0.5, 1, 1], np.float32),
                   weighted=np.array([True, False]))
    assert [int(word) for word in bag_words(bags)] == [
        3 | 1 << 17 | 5 << 36 | 7 << 48, 1 | 2 << 32, 3, 0x3F800000 | 0xC0000000 << 32, 0x3F000000,
        2 | 1 << 16 | 6 << 36 | 65535 << 48, 4, 1 << 35]


@pytest.mark.parametrize("wide", [0, 1])
@pytest.mark.parametrize("weighted", [0, 1])
def test_most_keys_of_a_number_of_words(wide, weighted):
    for words in range(2, 300):
        most = bag_keys(words, bool(wide), bool(weighted))
        assert words_of(most, wide, weighted) <= words < words_of(most + 1, wide, weighted)


@pytest.mark.parametrize(("words", "message"), [
    ([3, 0], "bag 0 of a list has 3 words, but 2 are left"),
    ([1, 0, 0], "bag 1 of a list has no keys"),
    ([1 | 1 << 17, 0], "bag 0 of a list has 3 words, but 2 are left"),
    ([1 | 1 << 18, 0], "bag 0 of a list has several parts"),
    ([1 | 1 << 26, 0], "bag 0 of a list has several parts"),
    ([1 | 1 << 16, 1 << 36], "a bag of a list has row 0x1000000000, above 36 bits")])
def test_invalid_bags_are_rejected(words, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_bags(np.array(words, np.uint64))


@pytest.mark.parametrize("pooled", [(), (1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("longest", [1, 40])
@pytest.mark.parametrize("payload_beats", [6, 22])
def test_queries_read_back_as_their_bags(pooled, longest, payload_beats):
    weighted = pooled[:1] if longest > 1 else pooled  # wide weighted bags of 40 exceed a packet
    samples = random_samples(17, 3, longest=longest, seed=longest, weighted=weighted)
    samples = replace(samples, rows=samples.rows + (samples.tables == 2) * (1 << 34))
    rows = np.array([1 << 20, 1 << 20, WIDE])
    owner_pooled = np.where(np.isin(np.arange(3), pooled), rows, 0)
    records, items = bag_queries(samples, (1 << 32) - 3, owner_pooled,
                                 weighted=np.isin(np.arange(3), weighted))
    expected = expected_items(samples, (1 << 32) - 3, owner_pooled, weighted)
    assert items_of([int(word) for word in records]) == expected and len(items) == len(expected)
    if not pooled:
        assert np.array_equal(records, query_records(samples, (1 << 32) - 3))
    read = []
    for packet in query_packets(records, node=1, step=2, payload_beats=payload_beats,
                                items=items):
        head = parse_header(packet[0])
        assert len(packet) - 1 == -(-head.count // 8) <= payload_beats
        # The items of a packet are whole: no bag is cut.
        read += items_of([int(word) for word in payload_records(packet[1:], head.count)])
    assert read == expected


@pytest.mark.parametrize("pooled", [(), (1,), (0, 1, 2)])
def test_queries_of_some_bags(pooled):
    """Each sample has its bags that are sent; a sample without any is left out."""
    samples = random_samples(40, 3, longest=5, seed=2)
    sent = np.random.default_rng(3).random((40, 3)) < 0.4
    owner_pooled = np.where(np.isin(np.arange(3), pooled), 1 << 20, 0)
    records, items = bag_queries(samples, 7, owner_pooled, sent)
    parts = [bag_queries(samples.slice(at, at + 1).of_tables(sent[at]), 7 + at, owner_pooled)
             for at in range(40) if sent[at].any()]
    assert 20 < len(parts) < 40
    assert np.array_equal(records, np.concatenate([words for words, _ in parts]))
    ends = np.cumsum([0, *(len(words) for words, _ in parts)])
    assert items.tolist() == [end + item for end, (_, places) in zip(ends, parts)
                              for item in places.tolist()]
    if not pooled:
        assert np.array_equal(records, query_records(samples, 7, sent))


def test_packets_are_as_full_as_their_bags_allow():
    items = np.array([0, 10, 11, 27, 40])
    packets = query_packets(np.arange(40, dtype=np.uint64), node=0, step=0, payload_beats=2,
                            items=items)
    assert [parse_header(packet[0]).count for packet in packets] == [11, 16, 13]


def test_a_bag_that_exceeds_a_packet_is_rejected():
    with pytest.raises(ValueError, match="words of a bag must be at most 16, those of a packet, "
                                         "not 17"):
        query_packets(np.zeros(20, np.uint64), node=0, step=0, payload_beats=2,
                      items=np.array([0, 1, 18]))


def test_too_many_slots_are_rejected():
    samples = Samples(np.zeros((1, 1), np.float32), np.zeros(1, np.float32),
                      np.array([[70_000, 1]], np.int32),
                      np.repeat([0, 1], [70_000, 1]).astype(np.int32), np.zeros(70_001, np.int64))
    with pytest.raises(ValueError, match="slots of a sample must fit 16 bits, not 70001"):
        bag_queries(samples, 0, np.array([0, 5]))


def test_missing_weights_are_rejected():
    with pytest.raises(ValueError, match="weights must be given for table 1, whose bags have "
                                         "weights, not None"):
        bag_queries(random_samples(9, 3), 0, np.array([0, 5, 0]),
                    weighted=np.array([False, True, False]))


@pytest.mark.parametrize("pooling", ["sum", "mean"])
@pytest.mark.parametrize("weighted", [(), (1,), (0, 1, 2)])
def test_vectors_of_bags_are_those_of_the_reference(pooling, weighted):
    model = Model((50, 60, 70), 16, 1, (16,), (1,), pooling=pooling, weighted_tables=weighted)
    samples = random_samples(9, 3, longest=5, seed=3, weighted=weighted)
    samples = replace(samples, rows=samples.rows % 50)
    lengths = samples.bag_lengths.reshape(-1).astype(np.int64)
    full = lengths > 0
    tables = samples.tables[samples.bag_offsets[:-1][full]].astype(np.int64)
    bags = BagList(tables, lengths[full], samples.rows, np.arange(len(tables)) + 3,
                   np.zeros(len(tables), bool), samples.weights,
                   np.isin(tables, weighted) if weighted else None)

    def read(tables, rows):
        return row_values(model, 4, tables, rows)

    reference = pooled_reference(samples, model, 4).reshape(-1, 16)[full]
    assert np.array_equal(pooled_bags(bags, read, pooling).view(np.uint32),
                          reference.view(np.uint32))
    tags, values = [], []
    for packet in bag_vectors(bags, read, np.ones(3, int), node=1, step=7, payload_beats=6):
        head = parse_header(packet[0])
        assert (head.opcode, head.step) == (Opcode.GPU_BAGS, 7) and head.count <= 5
        tags += packet[1].view("<u2")[:head.count].tolist()
        values.append(packet[2:].view("<f4")[:head.count])
    assert tags == bags.landings.tolist()
    assert np.array_equal(np.concatenate(values), pooled_bags(bags, read))


def test_a_packet_has_vectors_of_one_size():
    """The header states the size; short vectors come first."""
    model = Model((50, 60, 70), 64, 1, (64,), (1,), interaction="cat", dimensions=(16, 64, 10))
    beats = ShardPlan.deal(model, 2).beats
    tables = np.array([1, 0, 2, 1, 0, 1])
    bags = BagList(tables, np.full(6, 1), np.arange(6), np.arange(6) + 3, np.zeros(6, bool))

    def read(tables, rows):
        return row_values(model, 4, tables, rows)

    vectors, seen = pooled_bags(bags, read), []
    for packet in bag_vectors(bags, read, beats, node=1, step=7, payload_beats=9):
        count, size = parse_header(packet[0]).count, 1 + (int(packet[0, 11]) >> 24 & 0xFF)
        tags = packet[1].view("<u2")[:count].astype(int) - 3
        values = packet[2:].view("<f4").reshape(count, 16 * size)
        assert np.array_equal(values, vectors[tags][:, :16 * size])
        assert not vectors[tags][:, 16 * size:].any()
        seen.append((size, tags.tolist()))
    assert beats.tolist() == [1, 4, 1]
    assert seen == [(1, [1, 2, 4]), (4, [0, 3]), (4, [5])]


def test_the_head_of_a_bag_is_its_record():
    assert int(pack_records(BagHead, keys=9, wide=1, table=4095, landing=1)[0]) == (
        9 | 1 << 16 | 4095 << 36 | 1 << 48)
