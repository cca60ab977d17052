"""Record packager: gathers 8-byte records into packets, one destination each."""

from amaranth.hdl import Mux
from amaranth.lib.wiring import In

from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT, OutgoingRecord
from rtl.gateable import Gateable
from rtl.monitor.counters import CounterLayout
from rtl.network.packager import PACKAGER_EVENTS, Packager, latency_of
from rtl.network.packet_store import RecordStore

__all__ = ["RECORD_PACKAGER_COUNTERS", "RecordPackager"]

RECORD_PACKAGER_COUNTERS = CounterLayout("records", *PACKAGER_EVENTS)


class RecordPackager(Gateable, Packager):
    """Gather records by destination and step; send full or expired packets.

    Records of one destination keep their order, within and across packets. Unused places of the
    last beat are zero.

    Parameters
    ----------
    destinations: number of destinations.
    max_beats: payload beats of the largest packet.
    opcode: opcode of the packets.
    credited: beats need credit of their destination.
    buffers: packet buffers, by default 2 per destination, at least 4.
    records: most records of a packet, by default as many as its beats hold. With 1, the logic for
        several records is left out.
    places: records of a destination that may be inside, a power of two. Adds a queue per
        destination, see :class:`rtl.network.OutputQueues`; requires ``credited``.

    Ports
    -----
    i: stream of :data:`rtl.formats.OutgoingRecord`.
    headers, payload: streams of :data:`rtl.formats.FrameInfo` and :data:`rtl.formats.RawBeat`, to a
        frame assembler.
    batch: records that close a packet (0 counts as 1), bounded by ``max_beats`` and, with
        ``credited``, by ``window``.
    time, timeout: a packet closes when its first record is ``timeout`` cycles old.
    window, credit_in, lost: unacknowledged beats allowed per destination, at least 1;
        acknowledgements; bit mask of failed nodes; see :class:`rtl.network.CreditGate`. With
        ``credited``.
    queued: 1: records wait for credit in a queue of their destination; 0: a packet that waits for
        credit blocks all later packets. With ``places``. Must not change after the first record.
    credit_node, credit: the credit in a header to ``credit_node``, combinational.
    next_node: destination of the next packet, which may wait for credit; without a packet, the
        destination of the last queue that waited for credit, or 0.
    counters: ``records`` taken; ``packets`` sent; cycles in which a packet waited for credit (while
        ``queued``, inspections of a queue that waits for credit) or a record for a buffer; packets
        closed by ``full``, ``timeouts``, ``step_changes``.
    idle: no record inside. Waiting for credit clears ``idle``, because it is counted.

    Raises
    ------
    TypeError, ValueError
        A size is not an integer or out of range.
    """

    LATENCY = latency_of("record") | {
        ("record that fills a packet, with queues", "header"): 18}
    RATE = "1 record per cycle, less 1 cycle where a packet closes by step or by time-out"

    def __init__(self, destinations: int, max_beats: int, opcode: int, credited: bool, *,
                 buffers: int | None = None, records: int | None = None,
                 places: int | None = None):
        self._check(destinations, max_beats, 1)
        most = max_beats * RECORDS_PER_BEAT
        if records is not None and (
                isinstance(records, bool) or not isinstance(records, int)
                or not 1 <= records <= most):
            raise ValueError(f"records must be an integer between 1 and {most}, not {records!r}")
        if places is not None and not credited:
            raise ValueError("places requires credited=True")
        units = most if records is None else records
        super().__init__(OutgoingRecord, units, destinations, max_beats, opcode, credited, buffers,
                         items="records", bits=RECORD_BITS * min(units, RECORDS_PER_BEAT),
                         places=places, batch=In(16))

    def _limit(self, m, beats, limit):
        most = beats << 3
        if self._units < self._max_beats * RECORDS_PER_BEAT:
            most = Mux(most < self._units, most, self._units)
        m.d.sync += limit.eq(Mux(self.batch < most, self.batch, most))

    def _beats(self, units):
        return (units + RECORDS_PER_BEAT - 1) >> 3

    def _store(self, m, pool, item, reader):
        m.submodules.store = store = RecordStore(
            self._buffers, self._max_beats, min(self._units, RECORDS_PER_BEAT))
        m.d.comb += [
            store.write.eq(pool.ready), store.buffer.eq(pool.buffer),
            store.position.eq(pool.position), store.record.eq(item.record),
            store.read_en.eq(reader.read_en), store.read_buffer.eq(reader.read_buffer),
            store.read_beat.eq(reader.read_beat), store.read_units.eq(reader.read_units),
            reader.data.eq(store.data),
            *([m.submodules.queues.joined.valid.eq(store.shares)] if self._places else []),
        ]
