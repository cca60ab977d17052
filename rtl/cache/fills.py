"""Fill writer: checks arriving vectors and writes them to their slots."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.cache.tags import filled_signature, slot_bits
from rtl.config import BEAT_BITS

__all__ = ["FILL_ID_BITS", "FillBeat", "FillWriter", "write_signature"]

FILL_ID_BITS = 16
FillBeat = data.StructLayout({"id": FILL_ID_BITS, "data": BEAT_BITS, "last": 1, "lost": 1})
"""A beat of a fetched vector, with the miss id of its request. ``lost``: zeros replace the vector.
"""


def write_signature(rows: int, in_flight: int, vector_beats: int) -> wiring.Signature:
    """Signature of the write of a beat to the landing store and, if ``stored``, to a slot.

    ``offset`` is the beat's number times ``rows``, its address in the stores.
    """
    return wiring.Signature({
        "valid": Out(1), "stored": Out(1), "slot": Out(slot_bits(rows)),
        "offset": Out(range(max(2, rows * vector_beats))),
        "id": Out(max(1, ceil_log2(in_flight))), "beat": Out(range(max(2, vector_beats))),
        "data": Out(BEAT_BITS), "lost": Out(1)})


class FillWriter(wiring.Component):
    """Write the vectors that arrive, one beat per cycle, and close their miss ids.

    A vector is valid if its id is outstanding at the first beat, all its beats have that id, and it
    has exactly ``vector_beats`` beats; with ``checked`` it must also be ``owed``. Any other vector
    is dropped and counted once. Its id, if outstanding, stays so: the written beats are not read
    before a valid vector of the id has overwritten them. ``fills.ready`` is always 1.

    Parameters: ``rows``, ``in_flight``, ``vector_beats``, ``checked``: see
    :class:`rtl.cache.EmbeddingCache`.

    Ports
    -----
    fills: stream of :data:`FillBeat`, the beats of a vector consecutive.
    vector_beats: beats of a vector, at least 1.
    owed: in the cycle after the first beat: the vector may be taken (checked only).
    fill_id, busy, fill_slot, fill_allocated, fill_phase, close: connections to the miss table,
        which answers one cycle after ``fill_id``.
    write: see :func:`write_signature`.
    filled: the slot of an allocated fetch has its vector.
    complete, complete_id: the waiters of the id can be served.
    bad: 1 in the cycle in which an invalid vector ends, unless it is ``lost``.
    idle: no beat inside.
    """

    LATENCY = {
        ("last beat", "write"): 3,
        ("last beat", "close of its id"): 2,
    }
    RATE = "1 beat per cycle"

    def __init__(self, *, rows: int, in_flight: int, vector_beats: int, checked: bool = False):
        self._rows, self._beats, self._checked = rows, vector_beats, checked
        self._id_bits = id_bits = max(1, ceil_log2(in_flight))
        super().__init__({
            "fills": In(stream.Signature(FillBeat)), "vector_beats": In(range(vector_beats + 1)),
            "fill_id": Out(id_bits), "busy": In(1), "fill_slot": In(slot_bits(rows)),
            "fill_allocated": In(1), "fill_phase": In(1), "close": Out(1),
            "write": Out(write_signature(rows, in_flight, vector_beats)),
            "filled": Out(filled_signature(rows)),
            "complete": Out(1), "complete_id": Out(id_bits), "bad": Out(1), "idle": Out(1),
        } | ({"owed": In(1)} if checked else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        came, asked = Signal(), Signal(FillBeat, reset_less=True)
        valid, beat = Signal(), Signal(FillBeat, reset_less=True)
        # The beat has the id of the previous beat; the id is within the miss table and may be
        # taken.
        before, same = Signal(FILL_ID_BITS, reset_less=True), Signal(reset_less=True)
        known = Signal(reset_less=True)
        m.d.comb += [self.fills.ready.eq(1), self.fill_id.eq(asked.id[:self._id_bits])]
        m.d.sync += [
            came.eq(self.fills.valid), asked.eq(self.fills.payload), valid.eq(came), beat.eq(asked),
            same.eq(asked.id == before), known.eq(asked.id[self._id_bits:] == 0)]
        if self._checked:
            m.d.sync += known.eq((asked.id[self._id_bits:] == 0) & self.owed)
        with m.If(came):
            m.d.sync += before.eq(asked.id)

        number, offset = Signal(range(self._beats + 1)), Signal.like(self.write.offset)
        spoiled = Signal()
        first, good, final, close = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            first.eq(number == 0),
            # While no beat is invalid, the id of the previous beat equals that of the first one.
            good.eq(Mux(first, self.busy & known, ~spoiled & same)),
            final.eq(number + 1 == self.vector_beats),
            # Closed at once, so that a second vector with the same id is invalid.
            close.eq(valid & beat.last & good & final),
            self.close.eq(close),
            self.bad.eq(valid & beat.last & ~close & ~beat.lost),
        ]
        with m.If(valid):
            m.d.sync += spoiled.eq(~good | final)
            with m.If(beat.last):
                m.d.sync += [number.eq(0), offset.eq(0)]
            with m.Elif(~final & good):
                m.d.sync += [number.eq(number + 1), offset.eq(offset + self._rows)]
            with m.Elif(first):
                m.d.sync += number.eq(1)  # past the first beat, although the vector is invalid

        write, written = self.write, Signal(BEAT_BITS, reset_less=True)
        allocated, phase, complete = Signal(), Signal(), Signal()
        m.d.sync += [
            write.valid.eq(valid & good), write.stored.eq(valid & good & self.fill_allocated),
            write.slot.eq(self.fill_slot), write.offset.eq(offset),
            write.id.eq(beat.id[:self._id_bits]), write.beat.eq(number), written.eq(beat.data),
            write.lost.eq(beat.lost),
            allocated.eq(self.fill_allocated), phase.eq(self.fill_phase), complete.eq(close),
        ]
        m.d.comb += [
            write.data.eq(written),
            self.filled.valid.eq(complete & allocated), self.filled.slot.eq(write.slot),
            self.filled.phase.eq(phase),
            self.complete.eq(complete), self.complete_id.eq(write.id),
            self.idle.eq(~came & ~valid & ~write.valid & ~complete),
        ]
        return m
