"""Vector store: the vectors of slots and landing rows, and their read-out."""

from amaranth.hdl import C, Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.cache.fills import write_signature
from rtl.cache.scatter_list import waiter_layout
from rtl.cache.tags import slot_bits
from rtl.config import BEAT_BITS
from rtl.memory import Ram
from rtl.stream import CreditQueue, SkidBuffer

__all__ = ["BEATS_OUT", "HITS_AHEAD", "VectorStore", "landing_style", "row_write_layout",
           "vector_beat_layout"]


def vector_beat_layout(meta_shape, slots: int = 0) -> data.StructLayout:
    """Layout of a beat of a vector with the meta of its lookup.

    ``lost``: as in its fill. With a number of ``slots``, also the location of the vector: ``slot``
    if it is ``held``.
    """
    place = {"slot": slot_bits(slots), "held": 1} if slots else {}
    return data.StructLayout({"data": BEAT_BITS, "meta": meta_shape, "last": 1, "lost": 1} | place)


def row_write_layout(slots: int, vector_beats: int) -> data.StructLayout:
    """Layout of a beat to write to a slot: its number in the vector, and its values."""
    return data.StructLayout({
        "slot": slot_bits(slots), "beat": range(max(2, vector_beats)), "data": BEAT_BITS})


def landing_style(beats: int) -> str:
    """Return the style of a RAM of landing rows of ``beats`` beats together."""
    return "lutram" if beats <= 64 else "bram" if beats < 2048 else "uram"


BEATS_OUT = 8
"""Beats in flight or waiting behind the RAMs: each takes a place for 7 cycles."""

HITS_AHEAD = 31
"""Direct hits that may pass a waiter: hits then take at least 31 of 32 vectors."""


class VectorStore(wiring.Component):
    """Store the vectors of all slots, and the vector fetched for each miss id.

    A waiter reads the landing row of its id and never the slot. The slot is therefore free for the
    next key, whose vector may arrive at any time, as soon as the reads of its direct hits are
    issued.

    Beat ``b`` of row ``r`` has address ``b * rows + r``, so no address needs a multiplier. A waiter
    is served when no hit waits, or after :data:`HITS_AHEAD` hits. A beat is read only with a
    reserved place in the queue behind the RAMs, whose pins and outputs are registers.

    Parameters
    ----------
    meta_shape: shape of the data of a lookup.
    rows: number of slots.
    in_flight: number of miss ids.
    vector_beats: beats of the longest vector.
    style: style of the RAM of the slots.
    store_bits: bits of a beat that are stored; the other bits are read as 0.
    updated: rows are also written by updates.
    lossy: vectors may be ``lost``, which is stored with each beat.

    Ports
    -----
    write: see :func:`rtl.cache.fills.write_signature`; visible to reads that begin one cycle later.
    updates: input stream of :func:`row_write_layout`, one per cycle, except in cycles in which
        ``write`` stores; visible to reads that begin two cycles later (updated).
    hits: input stream of ``slot`` and ``meta``; taken when the read of the last beat is issued.
    waiters: input stream of :func:`rtl.cache.scatter_list.waiter_layout`; taken likewise.
    vector_beats: beats of a vector, at least 1.
    vectors: output stream of :func:`vector_beat_layout`, with slots if ``updated``.
    released: the last waiter of an id has read its landing row; the id is free.
    idle: inactive until an input changes.
    """

    LATENCY = {("hit or waiter", "its first beat"): 5}
    RATE = "1 beat per cycle"

    def __init__(self, meta_shape, *, rows: int, in_flight: int, vector_beats: int, style: str,
                 store_bits: int = BEAT_BITS, updated: bool = False, lossy: bool = False):
        self._lossy = lossy
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
            self._bits + self._lossy, self._rows * self._beats, style=self._style, latency=2)
        m.submodules.landing = landing = Ram(
            self._bits + self._lossy, landing_rows, latency=2,
            style=landing_style(landing_rows))
        m.submodules.queue = queue = CreditQueue(self._vector, BEATS_OUT)
        wiring.connect(m, queue.o, wiring.flipped(self.vectors))

        # Registers at the pins of the RAMs.
        def pin(ram: Ram, name: str) -> Signal:
            port = getattr(ram, name)
            register = Signal.like(port, reset_less=name != "write_en")
            m.d.comb += port.eq(register)
            return register

        names = ("write_en", "write_addr", "write_data", "read_addr")
        slot_pins, landing_pins = ({name: pin(ram, name) for name in names}
                                   for ram in (slots, landing))
        write, bits = self.write, self._bits
        word = Cat(write.data[:bits], write.lost)
        m.d.sync += [
            slot_pins["write_en"].eq(write.stored),
            slot_pins["write_addr"].eq(write.slot + write.offset),
            slot_pins["write_data"].eq(word),
            landing_pins["write_en"].eq(write.valid),
            landing_pins["write_addr"].eq(write.id + write.beat * self._ids),
            landing_pins["write_data"].eq(word),
        ]
        updates_idle = self._update(m, slot_pins) if self._updated else C(1)

        # A grant lasts from the first beat of a vector to its last.
        beat, offset = Signal(range(max(2, self._beats))), Signal.like(write.offset)
        current, waiter, issue, final = (Signal() for _ in range(4))
        # Lookups wait for their direct hits but not for their waiters. Hits therefore go first, and
        # waiters use the cycles that misses leave free, without starving.
        passed, due = Signal(range(HITS_AHEAD + 1)), Signal()
        m.d.comb += [
            waiter.eq(Mux(beat != 0, current, self.waiters.valid & (due | ~self.hits.valid))),
            issue.eq((self.hits.valid | self.waiters.valid) & queue.free),
            final.eq(beat + 1 == self.vector_beats),
            # The valid of ``hits`` is late, and its ready matters only with it.
            self.hits.ready.eq(queue.free & final & ~Mux(
                beat != 0, current, self.waiters.valid & due)),
            self.waiters.ready.eq(issue & waiter & final),
            queue.reserve.eq(issue),
            self.released.valid.eq(self.waiters.ready & self.waiters.payload.last),
            self.released.number.eq(self.waiters.payload.id),
        ]
        m.d.sync += [
            slot_pins["read_addr"].eq(self.hits.payload.slot + offset),
            landing_pins["read_addr"].eq(self.waiters.payload.id + beat * self._ids)]
        with m.If(issue):
            m.d.sync += [
                current.eq(waiter),
                beat.eq(Mux(final, 0, beat + 1)),
                offset.eq(Mux(final, 0, offset + self._rows)),
            ]
            with m.If(waiter):
                m.d.sync += [passed.eq(0), due.eq(0)]
            with m.Elif(final & self.waiters.valid & ~due):
                m.d.sync += [passed.eq(passed + 1), due.eq(passed == HITS_AHEAD - 1)]

        # Data that accompany a beat, beside the RAMs.
        beside = data.StructLayout({
            "waiter": 1, "last": 1, "meta": Shape.cast(self._meta).width,
            **({"slot": slot_bits(self._rows)} if self._updated else {})})
        under_way = Signal(3)
        stages = [Signal(beside, name=f"beside{k}", reset_less=True) for k in range(3)]
        hit_meta, waiter_meta = (Signal(beside["meta"].width) for _ in range(2))
        m.d.comb += [hit_meta.eq(self.hits.payload.meta), waiter_meta.eq(self.waiters.payload.meta)]
        m.d.sync += [
            under_way.eq(Cat(issue, under_way)),
            stages[0].waiter.eq(waiter), stages[0].last.eq(final),
            stages[0].meta.eq(Mux(waiter, waiter_meta, hit_meta)),
            stages[1].eq(stages[0]), stages[2].eq(stages[1]),
        ]
        read, item = stages[2], queue.i.payload
        found = Mux(read.waiter, landing.read_data, slots.read_data)
        m.d.comb += [
            queue.i.valid.eq(under_way[2]),
            item.data.eq(found[:bits]), item.lost.eq(found[bits:].any()),
            item.meta.eq(read.meta), item.last.eq(read.last),
            self.idle.eq(~self.hits.valid & ~self.waiters.valid & ~under_way.any() & queue.idle
                         & updates_idle),
        ]
        if self._updated:
            m.d.sync += stages[0].slot.eq(self.hits.payload.slot)
            m.d.comb += [item.held.eq(~read.waiter), item.slot.eq(read.slot)]
        return m

    def _update(self, m: Module, pins: dict[str, Signal]) -> Value:
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
            m.d.sync += [pins["write_en"].eq(updates.o.valid),
                         pins["write_addr"].eq(row.slot + offset), pins["write_data"].eq(row.data)]
        return Value.cast(updates.idle)
