"""Hold buffer: vectors arrive in any order and leave in the order of their slots."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import NicConfig
from rtl.formats import LANDING_BITS, HoldSlot, RecordKind, TaggedBeat, VectorBeat
from rtl.interaction.landing import LandingCheck
from rtl.interaction.records import SlotBeat
from rtl.memory import Ram
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import SkidBuffer

__all__ = ["HoldBuffer"]


class HoldBuffer(wiring.Component):
    """Ring of places, which are reserved in slot order before a lookup leaves.

    A slot is output as soon as it and all earlier ones are filled; an EMPTY slot counts as filled
    and gives beats of +0. A place is free again when its last beat is leaving, so a slot that is
    not pooled yet occupies its own (paper, 4.1.3; DESIGN, section 3).

    A vector for a place that is not reserved or already filled, or with a wrong number of beats,
    is dropped and counted; its place can still be filled by a right one. The filled bit of a place
    changes its meaning with every lap of the ring, so nothing is cleared
    while the buffer runs; after reset the bits are swept, one a cycle.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Parameters: ``config``; ``places``, a power of two, by default ``config.hold_vectors``.

    Ports
    -----
    reserve: stream of :data:`~rtl.formats.HoldSlot`; ready while a place is free.
    next_landing: the place of the next item on ``reserve``.
    remote: stream of :data:`~rtl.formats.TaggedBeat` from the network, always ready.
    local: stream of :data:`rtl.formats.VectorBeat` of this node's own lookups; waits for
        ``remote``. Vectors of the two may interleave beat by beat.
    vector_beats: beats of a vector, 1 to ``config.vector_beats``; may change while empty.
    o: stream of :data:`~rtl.interaction.records.SlotBeat`, in slot order.
    landed: in this cycle a vector has filled its place.
    time: counts cycles, including those skipped while idle.
    counters: ``reserved`` slots; ``vectors_in`` and ``beats_in`` that filled places;
        ``beats_out``; ``bad_landings``, vectors dropped; ``stall_full``, cycles in which a
        reservation waits for a place; ``stall_waiting``, cycles in which the oldest slot waits
        for its vector.
    idle: waiting for vectors is idle.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`.
    """

    LATENCY = {("last beat of a vector", "its first beat in slot order"): 5}
    RATE = "1 reservation, 1 beat in and 1 beat out per cycle"

    def __init__(self, config: NicConfig, *, places: int | None = None):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self.places, self.beats = places or config.hold_vectors, config.vector_beats
        self._bits = config.store_bits
        super().__init__({
            "reserve": In(stream.Signature(HoldSlot)), "next_landing": Out(LANDING_BITS),
            "remote": In(stream.Signature(TaggedBeat)), "local": In(stream.Signature(VectorBeat)),
            "vector_beats": In(range(self.beats + 1)), "o": Out(stream.Signature(SlotBeat)),
            "landed": Out(1), "time": In(32),
            "counters": Out(CounterLayout("reserved", "vectors_in", "beats_in", "beats_out",
                                          "bad_landings", "stall_full", "stall_waiting")),
            "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        places, beats = self.places, self.beats
        bits = ceil_log2(places)
        m.submodules.store = store = Ram(
            self._bits, places * beats, style="uram" if places * beats >= 2048 else "bram")
        m.submodules.slots = slots = Ram(HoldSlot.size, places, style="bram")
        m.submodules.landing = landing = LandingCheck(places, beats)
        m.submodules.marks = marks = SkidBuffer(bits + 1)
        m.submodules.output = output = SkidBuffer(SlotBeat)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        wiring.connect(m, wiring.flipped(self.remote), landing.remote)
        wiring.connect(m, wiring.flipped(self.local), landing.local)

        # The places from head to before tail are reserved; the bit above a place is its lap.
        head, tail, fetch = (Signal(bits + 1) for _ in range(3))
        level = Signal(range(places + 1))
        full, reserve, release = Signal(), Signal(), Signal()
        behind = Signal()
        empty_slot = self.reserve.payload.kind == RecordKind.EMPTY
        m.d.comb += [
            full.eq(level == places),
            self.reserve.ready.eq(~full & landing.swept & marks.i.ready & ~behind),
            reserve.eq(self.reserve.valid & self.reserve.ready),
            self.next_landing.eq(tail[:bits]),
            slots.write_en.eq(reserve), slots.write_addr.eq(tail[:bits]),
            slots.write_data.eq(self.reserve.payload),
            # No vector will fill the place of an EMPTY slot, so its bit is written here: otherwise
            # it would read as filled one lap later.
            marks.i.valid.eq(reserve & empty_slot), marks.i.payload.eq(tail),
            landing.mark.valid.eq(marks.o.valid), landing.mark.payload.eq(marks.o.payload),
            marks.o.ready.eq(landing.mark.ready),
            landing.head.eq(head), landing.level.eq(level),
            landing.vector_beats.eq(self.vector_beats), self.landed.eq(landing.vector_in),
        ]
        # A mark that collides with a vector's is delayed; no slot is reserved until it is written,
        # so it can never affect the place's next lap.
        m.d.sync += behind.eq(marks.o.valid & (behind | ~marks.o.ready))
        with m.If(reserve):
            m.d.sync += tail.eq(tail + 1)
        with m.If(release):
            m.d.sync += head.eq(head + 1)
        m.d.sync += level.eq(level + reserve - release)
        m.d.comb += [
            store.write_en.eq(landing.write_en), store.write_addr.eq(landing.write_addr),
            store.write_data.eq(landing.write_data),
        ]

        # The oldest slot: its record and bit are read, then it waits here for its vector.
        oldest = Signal(HoldSlot)
        oldest_valid, seen, there, fetching = Signal(), Signal(), Signal(), Signal()
        is_empty, taken, last_beat, room = Signal(), Signal(), Signal(), Signal()
        beat = Signal(range(max(2, beats)))
        m.d.comb += [
            fetching.eq((fetch != tail) & (~oldest_valid | release)),
            slots.read_en.eq(fetching), slots.read_addr.eq(fetch[:bits]),
            landing.look_en.eq(fetching), landing.look.eq(fetch),
            oldest.eq(slots.read_data),
            is_empty.eq(oldest.kind == RecordKind.EMPTY),
            there.eq(is_empty | seen | landing.looked | (
                landing.filled_valid & (landing.filled == head[:bits]))),
            taken.eq(oldest_valid & there & room),
            last_beat.eq(beat == (self.vector_beats - 1)[:len(beat)]),
            release.eq(taken & last_beat),
            store.read_en.eq(taken), store.read_addr.eq(head[:bits] * beats + beat),
        ]
        with m.If(fetching):
            m.d.sync += [fetch.eq(fetch + 1), oldest_valid.eq(1), seen.eq(0)]
        with m.Elif(release):
            m.d.sync += oldest_valid.eq(0)
        with m.Elif(there):
            m.d.sync += seen.eq(1)
        with m.If(taken):
            m.d.sync += beat.eq(Mux(last_beat, 0, beat + 1))

        read_valid = Signal()
        read = Signal(data.StructLayout({"slot": HoldSlot, "last": 1}))
        m.d.comb += [
            room.eq(~read_valid | output.i.ready),
            output.i.valid.eq(read_valid),
            output.i.payload.data.eq(
                Mux(read.slot.kind == RecordKind.EMPTY, 0, store.read_data)),
            output.i.payload.kind.eq(read.slot.kind),
            output.i.payload.sample.eq(read.slot.sample),
            output.i.payload.step.eq(read.slot.step),
            output.i.payload.sample_last.eq(read.slot.last),
            output.i.payload.beat_last.eq(read.last),
        ]
        with m.If(room):
            m.d.sync += read_valid.eq(taken)
        with m.If(taken):
            m.d.sync += read.eq(Cat(oldest, last_beat))

        # Both stalls may last through skipped idle cycles: they count time, not clock edges.
        before, waits, waits_full = Signal(32), Signal(), Signal()
        passed = Signal(32)
        m.d.comb += passed.eq(self.time - before)
        m.d.sync += [
            before.eq(self.time),
            waits.eq(oldest_valid & ~there), waits_full.eq(self.reserve.valid & full),
        ]
        count(m, self.counters, reserved=reserve, vectors_in=landing.vector_in,
              beats_in=landing.beats_in, bad_landings=landing.bad,
              beats_out=self.o.valid & self.o.ready,
              stall_full=Mux(waits_full, passed, 0), stall_waiting=Mux(waits, passed, 0))
        # A slot whose vector is there leaves, or is about to. Activity of its leaving, and of a
        # place just filled, which landing.idle covers, need not be included.
        m.d.comb += self.idle.eq(
            landing.idle & marks.idle & output.idle & ~read_valid
            & Mux(oldest_valid, ~(is_empty | seen | landing.looked), fetch == tail))
        return m
