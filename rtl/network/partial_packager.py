"""Partial packager: gathers beats of gradients or rows into packets, one destination each."""

from amaranth.hdl import Mux, Signal
from amaranth.lib.wiring import In

from rtl.config import partials_in
from rtl.formats import CREDIT_BITS, RECORDS_PER_BEAT, OutgoingPartial
from rtl.monitor.counters import CounterLayout
from rtl.network.packager import PACKAGER_EVENTS, Packager, latency_of
from rtl.network.packet_store import RecordStore, VectorStore
from rtl.network.sums import partial_beats

__all__ = ["PARTIAL_PACKAGER_COUNTERS", "PartialPackager"]

_EVENTS = ("beats", *PACKAGER_EVENTS)
PARTIAL_PACKAGER_COUNTERS = CounterLayout("partials", *_EVENTS)


class PartialPackager(Packager):
    """Gather beats and their records by destination and step; send full or expired packets.

    A packet contains its records, eight per beat, then the beats of values, in order of arrival
    (PARTIALS, SPILLED, ROW_UPDATES). Unused places of the last beat of records are zero. Vectors of
    4 or 8 values share beats, the first one in the lowest lanes; unused lanes of the last beat are
    zero.

    A packet is full if its beats hold no further partial, or if it fills three quarters of the
    window. Credit for that many beats always returns, see :class:`CreditReturn`. If packets must
    differ in more than the step, such as the level of spilled beats, the destination encodes the
    difference.

    Parameters
    ----------
    destinations, opcode, credited, buffers: see :class:`RecordPackager`.
    max_beats: payload beats of the largest packet, at least 2.

    Ports
    -----
    i: stream of :data:`rtl.formats.OutgoingPartial`; unused lanes are +0.
    vector_packing: log2 of the vectors that share a beat, 0 to 2; must be 0 if a vector has several
        beats. It may change while idle.
    window: as in :class:`RecordPackager`, but at least 2; with ``credited``.
    headers, payload, time, timeout, credit_in, lost, credit_node, credit, next_node, idle: see
        :class:`RecordPackager`.
    counters: ``partials`` taken, ``beats`` sent behind headers, the others as in
        :class:`RecordPackager`.

    Raises
    ------
    TypeError, ValueError
        A size is not an integer or out of range.
    """

    LATENCY = latency_of("beat")
    RATE = (
        "1 beat per cycle in, less 1 cycle where a packet closes by step or by time-out, and 1 "
        "beat per cycle out: 19 beats that nothing shares leave in a packet of 22")

    def __init__(self, destinations: int, max_beats: int, opcode: int, credited: bool, *,
                 buffers: int | None = None):
        self._check(destinations, max_beats, 2)
        super().__init__(OutgoingPartial, partials_in(max_beats, 2), destinations, max_beats,
                         opcode, credited, buffers, items="partials", events=_EVENTS, least=2,
                         vector_packing=In(2))

    def _room(self, window):
        # The receiver may leave up to a quarter unreported.
        return (window - (window >> 2))[:CREDIT_BITS]

    def _limit(self, m, beats, limit):
        held, packing = Signal.like(beats), Signal(2)
        m.d.sync += [held.eq(beats), packing.eq(self.vector_packing), limit.eq(1)]
        for shared in range(3):
            with m.If(packing == shared):
                with m.Switch(held):
                    for most in range(2, self._max_beats + 1):
                        with m.Case(most):
                            m.d.sync += limit.eq(partials_in(most, shared))

    def _beats(self, units):
        return partial_beats(units, self.vector_packing)

    def _store(self, m, pool, item, reader):
        most = self._max_beats
        m.submodules.records = records = RecordStore(
            self._buffers, -(-self._units // RECORDS_PER_BEAT))
        m.submodules.values = values = VectorStore(self._buffers, most - 1, self._units)
        for store in (records, values):
            m.d.comb += [
                store.write.eq(pool.ready), store.buffer.eq(pool.buffer),
                store.position.eq(pool.position), store.read_en.eq(reader.read_en),
                store.read_buffer.eq(reader.read_buffer),
            ]
        first, named = Signal(range(most + 1)), Signal()
        with m.If(reader.i.valid & reader.i.ready):
            m.d.sync += first.eq(_record_beats(reader.i.payload.units))
        with m.If(reader.read_en):
            m.d.sync += named.eq(reader.read_beat < first)
        m.d.comb += [
            records.record.eq(item.record), values.vector.eq(item.data),
            values.vector_packing.eq(self.vector_packing),
            records.read_beat.eq(reader.read_beat), values.read_beat.eq(reader.read_beat - first),
            records.read_units.eq(reader.read_units),
            reader.data.eq(Mux(named, records.data, values.data)),
        ]


def _record_beats(units):
    return (units + RECORDS_PER_BEAT - 1) >> 3
