"""Packets of gradients: decoding returns the packed gradients, in the fewest packets."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.wire.gradients import end_packet, gradient_packets
from host.wire.packets import parse_header, parse_records, payload_records, record_fields
from rtl.formats import GradientRecord, Opcode, RecordKind


def inputs(lengths, dimension, seed=0):
    rng = np.random.default_rng(seed)
    keys = int(sum(lengths))
    gradients = rng.integers(0, 1 << 32, (len(lengths), dimension), np.uint32).view(np.float32)
    return (rng.integers(0, 1 << 12, keys), rng.integers(0, 1 << 36, keys), np.array(lengths, int),
            gradients)


def read(packet, dimension):
    """Return the header, and (keys, bits of the vector) of each bag of a packet."""
    header = parse_header(packet[0])
    record_beats = -(-header.count // 8)
    fields = record_fields(GradientRecord, payload_records(packet[1:], header.count))
    bags, keys = [], []
    vectors = packet[1 + record_beats:].reshape(-1)
    for table, row, kind in zip(fields["table"].tolist(), fields["row"].tolist(),
                                fields["kind"].tolist(), strict=True):
        keys.append((table, row))
        if kind == RecordKind.KEY_END:
            at = dimension * len(bags)
            bags.append((keys, vectors[at:at + dimension].tolist()))
            keys = []
    assert not keys and not vectors[dimension * len(bags):].any()
    used = dimension * len(bags)
    assert len(vectors) - used < 16 and not fields["reserved"].any()
    return header, bags


def bags_of(tables, rows, lengths, gradients):
    """Return the bags with keys, in the form of :func:`read`."""
    at = 0
    for length, vector in zip(lengths.tolist(), gradients, strict=True):
        keys = list(zip(tables[at:at + length].tolist(), rows[at:at + length].tolist()))
        if keys:
            yield keys, vector.view(np.uint32).tolist()
        at += length


def beats_needed(bags, dimension):
    return -(-sum(len(keys) for keys, _ in bags) // 8) + -(-len(bags) * dimension // 16)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 100), max_size=40), st.sampled_from([4, 8, 16, 64]),
       st.integers(18, 64))
def test_round_trip_in_the_fewest_packets(lengths, dimension, payload_beats):
    given_ = inputs(lengths, dimension)
    packets = gradient_packets(*given_, node=3, step=0x1FFFE, payload_beats=payload_beats)
    read_back = [read(packet, dimension) for packet in packets]
    assert [bag for _, bags in read_back for bag in bags] == list(bags_of(*given_))
    for (header, bags), packet in zip(read_back, packets, strict=True):
        assert (header.opcode, header.destination, header.step) == (Opcode.GRADIENTS, 3, 0xFFFE)
        assert header.count == sum(len(keys) for keys, _ in bags)
        assert len(packet) == 1 + beats_needed(bags, dimension) <= 1 + payload_beats
    # In order, packets filled as far as possible are the fewest.
    for (_, bags), (_, after) in pairwise(read_back):
        assert beats_needed(bags + after[:1], dimension) > payload_beats


def test_no_bag_no_packet():
    assert gradient_packets(*inputs([0, 0], 16), node=0, step=0, payload_beats=22) == []


def test_the_longest_bag_fits_and_one_more_key_does_not():
    packet, = gradient_packets(*inputs([8 * 18], 64), node=0, step=0, payload_beats=22)
    assert len(packet) == 23
    with pytest.raises(ValueError, match="bag_lengths must be at most 144 for a bag to fit a "
                                         "packet of 22 beats, not 145"):
        gradient_packets(*inputs([1, 8 * 18 + 1], 64), node=0, step=0, payload_beats=22)


def test_a_packet_takes_more_bags_than_it_has_beats():
    # 56 keys take 7 beats, 56 vectors of 4 values 14; a 57th vector would need one more of each.
    packets = gradient_packets(*inputs([1] * 100, 4), node=0, step=0, payload_beats=22)
    assert [parse_header(packet[0]).count for packet in packets] == [56, 44]


@pytest.mark.parametrize("change, message", [
    ({"rows": np.arange(2)}, "rows must be 3, the sum of bag_lengths, not 2"),
    ({"tables": np.arange(4)}, "tables must be 3, the sum of bag_lengths, not 4"),
    ({"gradients": np.zeros((3, 16), "f4")}, "gradients must be 2 vectors"),
    ({"bag_lengths": np.array([4, -1])}, "bag_lengths must be at least 0, not -1"),
    ({"rows": np.array([1 << 36, 0, 0])}, "row must be between 0 and 68719476735"),
    ({"tables": np.array([0, 0, 4096])}, "table must be between 0 and 4095"),
])
def test_what_cannot_be_packed_is_refused(change, message):
    names = "tables", "rows", "bag_lengths", "gradients"
    arrays = dict(zip(names, inputs([2, 1], 16))) | change
    with pytest.raises(ValueError, match=message):
        gradient_packets(**arrays, node=0, step=0, payload_beats=22)


def test_the_end_is_one_record_of_its_own():
    packet = end_packet(node=2, step=0x1_0005)
    head = parse_header(packet[0])
    assert (head.opcode, head.step, head.count) == (Opcode.GRADIENTS, 5, 1) and len(packet) == 2
    fields = parse_records(GradientRecord, packet[1:], 8)
    assert fields["kind"].tolist() == [RecordKind.EMPTY] + [0] * 7 and not fields["row"].any()
