"""Row output: sends updated rows to their cache slots and to GPU memory, with their states."""

from amaranth.hdl import Module, Mux, ShapeLike, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.cache.tags import slot_bits
from rtl.cache.vectors import row_write_layout
from rtl.config import NicConfig
from rtl.formats import STEP_BITS, Key, OutgoingPartial, OutgoingRecord, StateRecord
from rtl.gradient.records import ROW_NUMBER_BITS, updated_layout
from rtl.shared import Shared
from rtl.stream import SkidBuffer

__all__ = ["RowOutput"]


class RowOutput(wiring.Component):
    """Send each beat of an updated row to the host and, if the cache holds the row, to its slot.

    With the last beat of a row, its state goes to the host in Adagrad mode, and its place becomes
    free. All outputs advance together: an output that is not ready blocks the others. The order of
    rows is kept.

    Ports
    -----
    i: stream of :func:`~rtl.gradient.records.updated_layout`; ``id`` is the number of the row.
    read_en, read_place, key, slot, held, freed: connections to
        :class:`~rtl.gradient.row_ring.RowRing`.
    write: stream of :func:`~rtl.cache.vectors.row_write_layout`.
    rows: stream of :data:`rtl.formats.OutgoingPartial`.
    states: stream of :data:`rtl.formats.OutgoingRecord` with a ``StateRecord``.
    step: step of the rows.
    adagrad: rows have states.
    sent: row beats and states that left ``rows`` and ``states``, modulo 2^32.
    waits: a beat waits for an output.
    idle: inactive until an input changes.
    """

    LATENCY = {("beat", "the same beat"): 2}
    RATE = "1 beat per cycle"

    def __init__(self, config: NicConfig):
        self._config = config
        self._place_bits = ceil_log2(config.update_rows)
        super().__init__({
            "i": In(stream.Signature(updated_layout(ROW_NUMBER_BITS))),
            "read_en": Out(1), "read_place": Out(self._place_bits),
            "key": In(Key), "slot": In(slot_bits(config.local_cache_rows)), "held": In(1),
            "freed": Out(1),
            "write": Out(stream.Signature(
                row_write_layout(config.local_cache_rows, config.vector_beats))),
            "rows": Out(stream.Signature(OutgoingPartial)),
            "states": Out(stream.Signature(OutgoingRecord)),
            "step": In(STEP_BITS), "adagrad": In(1),
            "sent": Out(32), "waits": Out(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.write_buffer = write = SkidBuffer(self.write.payload.shape())
        m.submodules.row_buffer = rows = SkidBuffer(OutgoingPartial)
        m.submodules.state_buffer = states = SkidBuffer(OutgoingRecord)
        for buffer, port in ((write, self.write), (rows, self.rows), (states, self.states)):
            wiring.connect(m, buffer.o, wiring.flipped(port))

        # A beat waits here while the ring reads the data of its row.
        shape = self.i.payload.shape()
        m.submodules.waiting = waiting = Shared(_Waiting(shape), "row_output_waiting")
        item, valid, go = waiting.o, Signal(), Signal()
        beat = Signal(range(max(2, self._config.vector_beats)))
        take = self.i.valid & self.i.ready
        m.d.comb += [
            self.i.ready.eq(~valid | go), self.read_en.eq(take),
            self.read_place.eq(self.i.payload.id[:self._place_bits]),
            go.eq(valid & write.i.ready & rows.i.ready & states.i.ready),
            self.waits.eq(valid & ~go),
            waiting.i.eq(self.i.payload), waiting.valid.eq(valid), waiting.go.eq(go),
        ]
        with m.If(self.i.ready):
            m.d.sync += valid.eq(self.i.valid)
        with m.If(go):
            m.d.sync += beat.eq(Mux(item.last, 0, beat + 1))

        state = Signal(StateRecord)
        m.d.comb += [
            self.freed.eq(go & item.last),
            write.i.valid.eq(go & self.held), write.i.payload.slot.eq(self.slot),
            write.i.payload.beat.eq(beat), write.i.payload.data.eq(item.row),
            rows.i.valid.eq(go), rows.i.payload.step.eq(self.step),
            rows.i.payload.record.row.eq(self.key.row),
            rows.i.payload.record.table.eq(self.key.table),
            rows.i.payload.record.beat.eq(beat), rows.i.payload.data.eq(item.row),
            state.state.eq(item.state), state.landing.eq(item.id),
            states.i.valid.eq(go & item.last & self.adagrad),
            states.i.payload.step.eq(self.step), states.i.payload.record.eq(state),
            self.idle.eq(~valid & write.idle & rows.idle & states.idle),
        ]
        m.d.sync += self.sent.eq(self.sent + (self.rows.valid & self.rows.ready)
                                 + (self.states.valid & self.states.ready))
        return m


class _Waiting(wiring.Component):
    """Register of the waiting beat, with its own enable: an enable shared with the choice of the
    next beat would drive hundreds of loads.

    Ports
    -----
    i, o: beats of ``shape``.
    valid: a beat waits.
    go: the beat leaves.
    """

    def __init__(self, shape: ShapeLike):
        super().__init__({"i": In(shape), "valid": In(1), "go": In(1), "o": Out(shape)})

    def elaborate(self, platform) -> Module:
        m = Module()
        item = Signal.like(self.o, reset_less=True)
        with m.If(~self.valid | self.go):
            m.d.sync += item.eq(self.i)
        m.d.comb += self.o.eq(item)
        return m
