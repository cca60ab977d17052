"""Packets of reads of rows in GPU memory."""

import numpy as np

from host.wire.packets import parse_header
from host.wire.record_packets import address_of
from host.wire.row_reads import RowReadList, parse_row_reads, row_reads_packet
from rtl.formats import Opcode


def test_reads_that_are_packed_are_parsed():
    reads = RowReadList(*(np.array(values, np.uint64) for values in (
        [0, (1 << 40) - 1, *range(7)], [1, 64, 2, 4, 8, 12, 16, 20, 255],
        [0xFFFF, 0, *range(7)])))
    packet = row_reads_packet(reads, 0x1234_5678_9ABC_DEF0, node=3, step=5)
    head = parse_header(packet[0])
    assert (head.opcode, head.source, head.step, head.count, len(packet)) == (
        Opcode.READ_ROWS, 3, 5, 9, 3)
    assert address_of(packet) == 0x1234_5678_9ABC_DEF0
    assert all(map(np.array_equal, parse_row_reads(packet, 9), reads))
