"""Packets of the rings of request lists and vectors in GPU memory."""

from typing import NamedTuple

import numpy as np

from host.wire.packets import header_beat, pack_records, parse_records
from host.wire.record_packets import address_of, addressed, record_packet
from rtl.formats import RECORDS_PER_BEAT, IndexRecord, Opcode, ReadRecord

__all__ = ["RingRead", "parse_read", "parse_ring_index", "read_data_packet", "read_packet",
           "ring_index_packet"]


class RingRead(NamedTuple):
    """A read of ``bytes`` bytes of GPU memory at ``address``; the answer has the ``tag``."""

    address: int
    bytes: int
    tag: int


def parse_ring_index(packet: np.ndarray) -> int:
    """Return the count in an INDEX packet."""
    return int(parse_records(IndexRecord, packet[1:], 1)["index"][0])


def parse_read(packet: np.ndarray) -> RingRead:
    """Return the read that a READ packet requests."""
    record = parse_records(ReadRecord, packet[1:], 1)
    return RingRead(address_of(packet), int(record["bytes"][0]), int(record["tag"][0]))


def ring_index_packet(index: int, address: int, *, node: int) -> np.ndarray:
    """Return an INDEX packet that writes the count ``index`` to ``address``."""
    record = pack_records(IndexRecord, index=index & 0xFFFF)
    return addressed(record_packet(Opcode.INDEX, record, node=node), address)


def read_packet(read: RingRead, *, node: int) -> np.ndarray:
    """Return a READ packet."""
    record = pack_records(ReadRecord, bytes=read.bytes, tag=read.tag & 0xFFFF)
    return addressed(record_packet(Opcode.READ, record, node=node), read.address)


def read_data_packet(data: np.ndarray, tag: int, *, node: int) -> np.ndarray:
    """Return the READ_DATA packet with the beats ``data`` of a read, uint32 ``[n, 16]``."""
    head = header_beat(Opcode.READ_DATA, node=node, step=0, acknowledge=tag & 0xFFFF,
                       count=RECORDS_PER_BEAT * len(data))
    return np.concatenate((head, data))
