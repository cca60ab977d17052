"""Rows in GPU memory that a NIC reads itself, with the DMA engine on its card."""

from bisect import bisect_right
from collections.abc import Callable
from math import inf

import numpy as np

from host.timing.gpu import GpuLookups
from host.timing.row_reads import RowReadTimes
from host.wire.packets import Header, pack_records, vectors_that_fit
from host.wire.record_packets import address_of
from host.wire.row_reads import parse_row_reads
from host.wire.rows import Answer
from rtl.config import NicConfig
from rtl.formats import READ_UNIT, RECORDS_PER_BEAT, LookupRecord, Opcode
from sim.job.row_places import ROWS_BASE, RowPlaces
from sim.node.errors import COUNT, ProtocolError
from sim.node.events import EventQueue

__all__ = ["RowReads"]


class RowReads:
    """Reads the rows that READ_ROWS packets name, and sends them with the tags of their records.

    Parameters
    ----------
    node: its number.
    config: of its NIC.
    places: locations of the tables in memory.
    times: of PCIe.
    gathers: counts of rows.
    events: of the host.
    awake: function from the time at which rows would leave GPU memory to the time at which they
        leave; infinite for never.
    answer: function that makes the packets with rows.
    send: function that sends a packet at a time, with the number of bytes that cross PCIe before
        it.

    ``sim/host_cpp/row_reads.h`` does the same in C++.
    """

    opcode = Opcode.READ_ROWS

    def __init__(self, node: int, config: NicConfig, places: RowPlaces, times: RowReadTimes,
                 gathers: GpuLookups, events: EventQueue, awake: Callable[[float], float],
                 answer: Answer, send: Callable[[np.ndarray, float, int], None]):
        self._node, self._places, self.times, self._gathers = node, places, times, gathers
        self._starts = [places.bases[table] for table in places.tables]
        self._most = vectors_that_fit(places.row_bytes // 4, config.host_payload_beats)
        self._events, self._awake, self._answer, self._send = events, awake, answer, send

    def take(self, packet: np.ndarray, head: Header, now: float) -> None:
        """Take a packet of reads that has crossed PCIe at ``now``.

        :class:`ProtocolError` for a packet that violates the protocol.
        """
        if not 0 < head.count <= min(self._most, RECORDS_PER_BEAT * (len(packet) - 1)):
            raise self._wrong(COUNT.format(head.opcode))
        records = self._keys(packet, head.count)
        self._gathers.rows += head.count
        leaves = self._awake(self.times.take(now, head.count, packet.nbytes))
        if leaves < inf:
            self._events.at(leaves, lambda now: self._leave(records, head.step, now))

    def _leave(self, records: np.ndarray, step: int, now: float) -> None:
        for packet in self._answer(records, step):
            self._send(packet, now, self.times.answered(len(records), packet.nbytes))

    def _keys(self, packet: np.ndarray, count: int) -> np.ndarray:
        """Return lookup records of the keys whose rows are at the addresses that are read."""
        reads = parse_row_reads(packet, count)
        address = address_of(packet)
        tables, rows = np.empty(count, np.uint64), np.empty(count, np.uint64)
        for number, (offset, units) in enumerate(zip(reads.offsets.tolist(),
                                                     reads.units.tolist())):
            place = address + READ_UNIT * offset - ROWS_BASE
            held = bisect_right(self._starts, place) - 1
            row, rest = divmod(place - self._starts[max(held, 0)], self._places.row_bytes)
            if held < 0 or rest or place >= self._places.end or units != self._places.units:
                raise self._wrong(f"read address {ROWS_BASE + place:#x} of GPU memory, which is "
                                  "not a row of this length")
            tables[number], rows[number] = self._places.tables[held], row
        return pack_records(LookupRecord, row=rows, table=tables,
                            landing=reads.tags)

    def _wrong(self, what: str) -> ProtocolError:
        return ProtocolError(f"node {self._node} {what}")
