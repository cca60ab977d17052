"""Packets of the rings in GPU memory."""

import numpy as np

from host.wire.gpu_rings import (
    RingRead,
    parse_read,
    parse_ring_index,
    read_data_packet,
    read_packet,
    ring_index_packet,
)
from host.wire.packets import header_beat, parse_header
from host.wire.record_packets import address_of, addressed
from rtl.formats import Opcode


def test_a_count_is_written_to_its_address():
    packet = ring_index_packet(0x3_FFFE, 0x1234_5678_9ABC_DEF0, node=3)
    head = parse_header(packet[0])
    assert (head.opcode, head.source, head.count, len(packet)) == (Opcode.INDEX, 3, 1, 2)
    assert (address_of(packet), parse_ring_index(packet)) == (0x1234_5678_9ABC_DEF0, 0xFFFE)


def test_a_read_that_is_packed_is_parsed():
    read = RingRead(0x1234_5678_9ABC_DEF0, 0xFEDC_BA98, 0xFFFF)
    packet = read_packet(read, node=3)
    head = parse_header(packet[0])
    assert (head.opcode, head.source, head.count, len(packet)) == (Opcode.READ, 3, 1, 2)
    assert parse_read(packet) == read and address_of(packet) == read.address


def test_data_is_counted_in_words_of_8_bytes():
    data = np.arange(48, dtype=np.uint32).reshape(3, 16)
    packet = read_data_packet(data, 0x1_0005, node=3)
    head = parse_header(packet[0])
    assert (head.opcode, head.acknowledge, head.count) == (Opcode.READ_DATA, 5, 24)
    assert np.array_equal(packet[1:], data)


def test_a_packet_for_a_queue_has_address_0():
    head = header_beat(Opcode.LOOKUP_REQUESTS, node=3, step=7, count=0)
    assert address_of(head) == 0
    sent = addressed(head, 64)
    assert address_of(sent) == 64 and parse_header(sent[0]) == parse_header(head[0])
