"""Vector store: the vectors of slots and landing rows, with their read-out."""

from amaranth.hdl import C, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.cache.fills import write_signature
from rtl.cache.scatter_list import waiter_layout
from rtl.cache.tags import slot_bits
from rtl.config import BEAT_BITS
from rtl.memory import Ram
from rtl.stream import SkidBuffer

__all__ = ["HITS_AHEAD", "VectorStore", "row_write_layout", "vector_beat_layout"]


def vector_beat_layout(meta_shape, slots: int = 0) -> data.StructLayout:
    """Layout of a beat of a vector with the meta of the lookup that it answers.

    With a number of ``slots``, also the vector's location: in ``slot`` if it is ``held``.
    """
    place = {"slot": slot_bits(slots), "held": 1} if slots else {}
    return data.StructLayout({"data": BEAT_BITS, "meta": meta_shape, "last": 1} | place)


def row_write_layout(slots: int, vector_beats: int) -> data.StructLayout:
    """Layout of a beat to be written to a slot: its number in the vector, and its values."""
    return data.StructLayout({
        "slot": slot_bits(slots), "beat": range(max(2, vector_beats)), "data": BEAT_BITS})


HITS_AHEAD = 31
"""Direct hits that may pass a waiter: hits then take at least 31 of 32 vectors."""


class VectorStore(wiring.Component):
    """Store the vectors of all slots, and the vector fetched for each miss id.

    A waiter reads the landing row of its id and never the slot, so the slot is free for the next
    key, whose vector may arrive at any time, as soon as the reads of its direct hits are issued.

    Beat ``b`` of row ``r`` lies at ``b * rows + r``, so that no address needs a product. A waiter
    goes when no hit is there, or after :data:`HITS_AHEAD` hits. Latency and rate: see ``LATENCY``
    and ``RATE``.

    Parameters: ``meta_shape``; ``rows``; ``in_flight``; ``vector_beats``, the largest; ``style`` of
    the slots' RAM; ``store_bits`` that are stored of a beat, the others are read as 0;
    ``updated``: rows are also written by updates.

    Ports
    -----
    write: see :func:`rtl.cache.fills.write_signature`; it is in place for a read one cycle later.
    updates (updated): input stream of :func:`row_write_layout`, one a cycle but for those in which
        ``write`` stores; written one cycle later, and in place for a read two cycles later.
    hits: input stream of ``slot`` and ``meta``; taken when the read of the last beat is issued.
    waiters: input stream of :func:`rtl.cache.scatter_list.waiter_layout`; taken likewise.
    vector_beats: beats of a vector now, at least 1.
    vectors: output stream of :func:`vector_beat_layout`, with slots if they are updated.
    released: the last waiter of an id has read its landing row: the id is free.
    idle.
    """

    LATENCY = {("hit or waiter", "its first beat"): 2}
    RATE = "1 beat per cycle"

    def __init__(self, meta_shape, *, rows: int, in_flight: int, vector_beats: int, style: str,
                 store_bits: int = BEAT_BITS, updated: bool = False):
        self._meta, self._rows, self._ids = meta_shape, rows, in_flight
        self._beats, self._style, self._bits = vector_beats, style, store_bits
        self._updated = updated
        self._vector = vector_beat_layout(meta_shape, rows if updated else 0)
        self._hit = data.StructLayout({"slot": slot_bits(rows), "meta": meta_shape})
        super().__init__({
            "write": In(write_signature(rows, in_flight, vector_beats)),
            "hits": In(stream.Signature(self._hit)),
            "waiters": In(stream.Signature(waiter_layout(meta_shape, in_flight))),
            "vector_beats": In(range(vector_beats + 1)),
            "vectors": Out(stream.Signature(self._vector)),
            "released": Out(wiring.Signature(
                {"valid": Out(1), "number": Out(max(1, ceil_log2(in_flight)))})),
            "idle": Out(1)} | ({
                "updates": In(stream.Signature(row_write_layout(rows, vector_beats))),
            } if updated else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        landing_rows = self._ids * self._beats
        m.submodules.slots = slots = Ram(
            self._bits, self._rows * self._beats, style=self._style)
        m.submodules.landing = landing = Ram(
            self._bits, landing_rows,
            style="lutram" if landing_rows <= 64 else "bram" if landing_rows < 2048 else "uram")
        m.submodules.buffer = buffer = SkidBuffer(self._vector)
        wiring.connect(m, buffer.o, wiring.flipped(self.vectors))

        write = self.write
        m.d.comb += [
            slots.write_en.eq(write.stored), slots.write_addr.eq(write.slot + write.offset),
            slots.write_data.eq(write.data),
            landing.write_en.eq(write.valid),
            landing.write_addr.eq(write.id + write.beat * self._ids),
            landing.write_data.eq(write.data),
        ]

        updates_idle = self._update(m, slots) if self._updated else C(1)

        # Read-out: the RAMs hold their output until the buffer takes it.
        out_valid, out_waiter, out_last = Signal(), Signal(), Signal()
        out_meta = Signal(Shape.cast(self._meta).width)
        # A grant holds from the first beat of a vector to its last.
        beat, offset = Signal(range(max(2, self._beats))), Signal.like(write.offset)
        current, waiter, issue, final = (Signal() for _ in range(4))
        # Lookups wait for their direct hits but not for their waiters, so hits go first and waiters
        # use the cycles that misses leave free, but without starving.
        passed, due = Signal(range(HITS_AHEAD + 1)), Signal()
        hit_meta, waiter_meta = Signal.like(out_meta), Signal.like(out_meta)
        m.d.comb += [
            hit_meta.eq(self.hits.payload.meta), waiter_meta.eq(self.waiters.payload.meta),
            due.eq(passed == HITS_AHEAD),
            waiter.eq(Mux(beat != 0, current, self.waiters.valid & (due | ~self.hits.valid))),
            issue.eq((self.hits.valid | self.waiters.valid) & (~out_valid | buffer.i.ready)),
            final.eq(beat + 1 == self.vector_beats),
            self.hits.ready.eq(issue & ~waiter & final),
            self.waiters.ready.eq(issue & waiter & final),
            slots.read_en.eq(issue), slots.read_addr.eq(self.hits.payload.slot + offset),
            landing.read_en.eq(issue),
            landing.read_addr.eq(self.waiters.payload.id + beat * self._ids),
            self.released.valid.eq(self.waiters.ready & self.waiters.payload.last),
            self.released.number.eq(self.waiters.payload.id),
            buffer.i.valid.eq(out_valid),
            buffer.i.payload.data.eq(Mux(out_waiter, landing.read_data, slots.read_data)),
            buffer.i.payload.meta.eq(out_meta), buffer.i.payload.last.eq(out_last),
            self.idle.eq(~self.hits.valid & ~self.waiters.valid & ~out_valid & buffer.idle
                         & updates_idle),
        ]
        with m.If(issue):
            m.d.sync += [
                current.eq(waiter),
                beat.eq(Mux(final, 0, beat + 1)),
                offset.eq(Mux(final, 0, offset + self._rows)),
                out_valid.eq(1), out_waiter.eq(waiter), out_last.eq(final),
                out_meta.eq(Mux(waiter, waiter_meta, hit_meta)),
            ]
            with m.If(waiter):
                m.d.sync += passed.eq(0)
            with m.Elif(final & self.waiters.valid & ~due):
                m.d.sync += passed.eq(passed + 1)
        with m.Elif(buffer.i.ready):
            m.d.sync += out_valid.eq(0)
        if self._updated:
            held, slot = Signal(), Signal(slot_bits(self._rows))
            with m.If(issue):
                m.d.sync += [held.eq(~waiter), slot.eq(self.hits.payload.slot)]
            m.d.comb += [buffer.i.payload.held.eq(held), buffer.i.payload.slot.eq(slot)]
        return m

    def _update(self, m: Module, slots: Ram) -> Value:
        """Write rows to their slots in cycles without fills; return whether none waits."""
        m.submodules.updates = updates = SkidBuffer(self.updates.payload.shape())
        wiring.connect(m, wiring.flipped(self.updates), updates.i)
        row, offset = updates.o.payload, Signal.like(self.write.offset)
        with m.Switch(row.beat):
            for beat in range(self._beats):
                with m.Case(beat):
                    m.d.comb += offset.eq(beat * self._rows)
        m.d.comb += updates.o.ready.eq(~self.write.stored)
        with m.If(~self.write.stored):
            m.d.comb += [slots.write_en.eq(updates.o.valid),
                         slots.write_addr.eq(row.slot + offset), slots.write_data.eq(row.data)]
        return Value.cast(updates.idle)
