"""Packets packed by the host, decoded field by field with plain integers."""

import numpy as np
import pytest

from host.samples import Samples
from host.wire.packets import (
    gpu_vectors,
    header_beat,
    pack_records,
    parse_errors,
    parse_header,
    parse_pooled,
    parse_records,
    query_packets,
    query_records,
)
from rtl.formats import ErrorRecord, LookupRecord, Opcode, Status
from tests.host.test_samples import bags, random_samples


def _samples() -> Samples:
    lengths = np.array([[2, 0, 1], [0, 0, 3]], np.int32)
    return Samples(np.zeros((2, 1), np.float32), np.zeros(2, np.float32), lengths,
                   np.array([0, 0, 2, 2, 2, 2], np.int32),
                   np.array([5, 5, 7, 1 << 35, 2, 3], np.int64))


def test_query_records():
    got = [int(record) for record in query_records(_samples(), 100)]
    key = [5, 5 | 1 << 48, 2 << 48, 7 | 2 << 36 | 1 << 48]
    first = [100 | 4 << 32 | 3 << 48, *key]
    second = [101 | 5 << 32 | 3 << 48, 2 << 48, 2 << 48, 1 << 35 | 2 << 36, 2 | 2 << 36,
              3 | 2 << 36 | 1 << 48]
    assert got == first + second


@pytest.mark.parametrize("payload_beats", [1, 5, 64])
@pytest.mark.parametrize("longest", [0, 1, 40])
def test_queries_read_back_as_their_samples(payload_beats, longest):
    samples = random_samples(60, 5, seed=longest, longest=longest)
    records = []
    for packet in query_packets(query_records(samples, 1000), node=1, step=2,
                                payload_beats=payload_beats):
        count = parse_header(packet[0]).count
        assert 1 + -(-count // 8) == len(packet) <= 1 + payload_beats
        records += packet[1:].reshape(-1).view(np.uint64)[:count].tolist()
    got = iter(records)
    for number, expected in enumerate(bags(samples), 1000):
        head = next(got)
        assert (head & 0xFFFFFFFF, head >> 48) == (number, 3)
        slots, bag, back = [next(got) for _ in range(head >> 32 & 0xFFFF)], [], []
        for slot in slots:
            kind = slot >> 48
            if kind < 2:
                bag.append((slot >> 36 & 0xFFF, slot & (1 << 36) - 1))
            if kind == 2:
                assert not bag
            if kind > 0:
                back, bag = [*back, bag], []
        assert back == expected and not bag
    assert next(got, None) is None


def test_query_packets_are_cut():
    packets = query_packets(query_records(_samples(), 0), node=3, step=65537, payload_beats=1)
    assert [len(p) for p in packets] == [2, 2]
    heads = [parse_header(p[0]) for p in packets]
    assert [h.count for h in heads] == [8, 3]
    assert all((h.opcode, h.source, h.step) == (Opcode.QUERIES, 3, 1) for h in heads)
    assert not packets[1][1, 6:].any()


def test_header_bytes():
    raw = header_beat(Opcode.QUERIES, node=2, step=0x0102, count=0x0304, credit=7).tobytes()
    assert raw[:42] == bytes(42)
    assert raw[42:46] == bytes([1, 0x10, 2, 2])
    assert raw[48:50] == b"\x02\x01" and raw[56:58] == b"\x07\x00" and raw[58:60] == b"\x04\x03"


@pytest.mark.parametrize("opcode", [Opcode.GPU_VECTORS, Opcode.DENSE_VECTORS])
@pytest.mark.parametrize("dimension", [4, 8, 16, 48, 256])
def test_gpu_vectors(dimension, opcode):
    tags = np.arange(451, dtype=np.uint16) * 3
    vectors = np.random.default_rng(1).random((451, dimension), np.float32)
    packets = gpu_vectors(tags, vectors, node=0, step=0, payload_beats=64, opcode=opcode)
    got_tags, got = [], []
    for packet in packets:
        head = parse_header(packet[0])
        count = head.count
        assert head.opcode == opcode
        tag_beats = -(-count // 32)
        assert len(packet) == 1 + tag_beats - -count * dimension // 16 <= 65
        got_tags += packet[1:1 + tag_beats].view(np.uint16).reshape(-1)[:count].tolist()
        values = packet[1 + tag_beats:].view(np.float32).reshape(-1)
        assert not values[count * dimension:].any()
        got.append(values[:count * dimension].reshape(count, dimension))
    assert got_tags == tags.tolist()
    assert np.array_equal(np.concatenate(got), vectors)


def test_records_round_trip():
    rows = np.array([0, (1 << 36) - 1, 12345], np.uint64)
    records = pack_records(LookupRecord, row=rows, table=np.array([0, 4095, 7]), landing=9)
    padded = np.zeros(8, np.uint64)
    padded[:3] = records
    back = parse_records(LookupRecord, padded.view(np.uint32).reshape(1, 16), 3)
    assert back["row"].tolist() == rows.tolist()
    assert back["table"].tolist() == [0, 4095, 7] and back["landing"].tolist() == [9] * 3
    with pytest.raises(ValueError, match="table must be between 0 and 4095, not 4096 to 4096"):
        pack_records(LookupRecord, row=rows, table=np.array([4096]))


def test_pooled():
    packet = np.zeros((4, 16), np.uint32)
    packet[1, 0], packet[1, 1] = 77, 5 | 1 << 16
    packet[2:] = np.arange(32, dtype=np.float32).view(np.uint32).reshape(2, 16)
    sample, first_bag, last, vectors, status = parse_pooled(packet, 2, 16)
    assert (sample, first_bag, last, status) == (77, 5, True, 0)
    assert vectors.tolist() == np.arange(32.0).reshape(2, 16).tolist()
    assert parse_pooled(packet, 1, 32)[3].tolist() == [np.arange(32.0).tolist()]
    assert parse_pooled(packet, 7, 4)[3].tolist() == np.arange(28.0).reshape(7, 4).tolist()
    packet[1, 1] |= Status.PEER << 17
    assert parse_pooled(packet, 2, 16)[4] == Status.PEER


def test_requests_and_errors():
    records = np.zeros(16, np.uint64)
    records[:9] = pack_records(LookupRecord, row=np.arange(9), table=3, landing=np.arange(9) + 100)
    packet = np.concatenate((np.zeros((1, 16), np.uint32), records.view(np.uint32).reshape(2, 16)))
    got = parse_records(LookupRecord, packet[1:], 9)
    assert got["row"].tolist() == list(range(9)) and got["table"].tolist() == [3] * 9
    assert got["landing"].tolist() == list(range(100, 109))

    records[:2] = [0xFFFFFFFF | 7 << 32 | 3 << 48, 5 | 6 << 32 | 9 << 48]
    assert int(pack_records(ErrorRecord, sample=5, step=6, status=9)[0]) == int(records[1])
    packet[1:] = records.view(np.uint32).reshape(2, 16)
    got = parse_errors(packet, 2)
    assert got["sample"].tolist() == [0xFFFFFFFF, 5]
    assert got["step"].tolist() == [7, 6] and got["status"].tolist() == [3, 9]
