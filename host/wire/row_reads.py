"""Packets that read rows in GPU memory."""

from typing import NamedTuple

import numpy as np

from host.wire.packets import header_beat, pack_records, parse_records, records_to_beats
from host.wire.record_packets import addressed
from rtl.formats import Opcode, RowReadRecord

__all__ = ["RowReadList", "parse_row_reads", "row_reads_packet"]


class RowReadList(NamedTuple):
    """Reads of rows, uint64 ``[n]`` each: offset and length in units of 16 bytes, and tag."""

    offsets: np.ndarray
    units: np.ndarray
    tags: np.ndarray


def parse_row_reads(packet: np.ndarray, count: int) -> RowReadList:
    """Return the ``count`` reads of a READ_ROWS packet."""
    fields = parse_records(RowReadRecord, packet[1:], count)
    return RowReadList(fields["offset"], fields["units"], fields["tag"])


def row_reads_packet(reads: RowReadList, address: int, *, node: int, step: int = 0) -> np.ndarray:
    """Return a READ_ROWS packet of reads relative to ``address``."""
    records = pack_records(RowReadRecord, offset=reads.offsets, units=reads.units, tag=reads.tags)
    head = header_beat(Opcode.READ_ROWS, node=node, step=step, count=len(records))
    return addressed(np.concatenate((head, records_to_beats(records))), address)
