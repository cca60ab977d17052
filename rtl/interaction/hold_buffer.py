"""Hold buffer: vectors arrive in any order and leave in the order of their slots."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import LANES, NicConfig
from rtl.formats import (
    LANDING_BITS,
    HoldSlot,
    RecordKind,
    TaggedBeat,
    ValueFormat,
    VectorBeat,
    hold_slot,
)
from rtl.interaction.decoder import VectorDecoder
from rtl.interaction.landing import LandingCheck
from rtl.interaction.records import SlotBeat, slot_beat
from rtl.memory import Ram
from rtl.monitor.counters import CounterLayout, count
from rtl.stream import Level, StreamFIFO

__all__ = ["HoldBuffer"]


class HoldBuffer(wiring.Component):
    """Ring of places, which are reserved in slot order before a lookup leaves.

    A slot is output as soon as it and all earlier slots are filled. An EMPTY slot counts as filled,
    with beats of +0. A place is free again when its last beat leaves, so a slot that is not yet
    pooled occupies a place (paper, 4.1.3).

    A vector is dropped and counted if its place is not reserved or already filled, or if its number
    of beats is wrong; a valid vector can still fill the place. The meaning of a place's filled bit
    inverts with every lap of the ring, so no bit is cleared in operation. After reset, a sweep
    writes one bit per cycle.

    Parameters
    ----------
    config: sizes.
    places: number of places, a power of two, by default ``config.hold_vectors``.
    lossy: vectors of ``remote`` may be ``lost``; by default with ``config.link``.
    bags: slots may be bags that their owner has pooled; by default with ``config.owner_bags``.
    short: vectors may have 16-bit values; by default with ``config.short_vectors``.
    codes: they may also be int8; by default with ``config.code_vectors``.

    Ports
    -----
    reserve: stream of :func:`~rtl.formats.hold_slot`; ready while a place is free.
    next_landing: the place of the next item at ``reserve``.
    remote: stream of :data:`~rtl.formats.TaggedBeat` from the network, always ready.
    local: stream of :data:`rtl.formats.VectorBeat` of this node's own lookups; ``remote`` has
        priority. Vectors of the two may interleave beat by beat.
    vector_beats: beats of the vector of a key, and of every vector at ``o``, 1 to
        ``config.vector_beats``; may change while empty. The vector of a bag has the beats of its
        slot; beats of +0 follow at ``o``.
    value_format, value_beats (``short``), value_count (``codes``): see
        :class:`~rtl.interaction.decoder.VectorDecoder`, through which every vector leaves. May
        change while empty.
    o: stream of :func:`~rtl.interaction.records.slot_beat`, in slot order.
    landed: event: a vector has filled its place.
    time: cycle counter, including cycles skipped while idle.
    counters: ``reserved`` slots; ``vectors_in`` and ``beats_in`` that filled places; ``beats_out``;
        ``bad_landings``, vectors dropped; ``stall_full``, cycles in which a reservation waits for a
        place; ``stall_waiting``, cycles in which the oldest slot waits for its vector.
    idle: inactive until an input changes. Waiting for vectors does not clear it.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`.
    """

    LATENCY = {("last beat of a vector", "its first beat in slot order"): 8}
    RATE = "1 reservation, 1 beat in and 1 beat out per cycle"
    WINDOW = 4
    """Slots that are inspected ahead, a power of two: one per cycle, for three cycles each."""
    OUT_BEATS = 8
    """Beats between their choice and their output: each takes a place for five cycles."""
    MARKS = 4
    """EMPTY slots whose bits are not written yet: those of four cycles, until a delay is known."""

    def __init__(self, config: NicConfig, *, places: int | None = None,
                 lossy: bool | None = None, bags: bool | None = None,
                 short: bool | None = None, codes: bool | None = None):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        self.places, self.beats = places or config.hold_vectors, config.vector_beats
        self._bits, self._lossy = config.store_bits, config.link if lossy is None else lossy
        bags = config.owner_bags > 0 if bags is None else bags
        positions = config.repeat_positions if bags else 0
        self._sized = bags and self.beats > 1
        self._short = config.short_vectors if short is None else short
        self._codes = config.code_vectors if codes is None else codes
        self._slot, self._beat = (
            (hold_slot(True, positions), slot_beat(True, positions)) if bags else
            (HoldSlot, SlotBeat))
        super().__init__({
            "reserve": In(stream.Signature(self._slot)), "next_landing": Out(LANDING_BITS),
            "remote": In(stream.Signature(TaggedBeat)), "local": In(stream.Signature(VectorBeat)),
            "vector_beats": In(range(self.beats + 1)), "o": Out(stream.Signature(self._beat)),
            "landed": Out(1), "time": In(32),
            "counters": Out(CounterLayout("reserved", "vectors_in", "beats_in", "beats_out",
                                          "bad_landings", "stall_full", "stall_waiting")),
            "idle": Out(1),
        } | ({"value_format": In(ValueFormat), "value_beats": In(range(self.beats + 1))}
             if self._short else {})
          | ({"value_count": In(range(LANES * self.beats + 1))} if self._codes else {}))

    def elaborate(self, platform) -> Module:
        m = Module()
        places, beats = self.places, self.beats
        bits = ceil_log2(places)
        m.submodules.landing = landing = LandingCheck(places, beats, sized=self._sized)
        m.submodules.marks = marks = StreamFIFO(bits + 1, self.MARKS)
        m.submodules.free = free = Level(places, init=places)
        m.submodules.unread = unread = Level(places)
        wiring.connect(m, wiring.flipped(self.remote), landing.remote)
        wiring.connect(m, wiring.flipped(self.local), landing.local)

        # The places from head to before tail are reserved; the bit above a place is its lap.
        head, tail, level = Signal(bits + 1), Signal(bits + 1), Signal(range(places + 1))
        reserve, release, behind = Signal(), Signal(), Signal()
        m.d.comb += [
            self.reserve.ready.eq(free.some & landing.swept & ~behind),
            reserve.eq(self.reserve.valid & self.reserve.ready),
            free.down.eq(reserve), free.up.eq(release), self.next_landing.eq(tail[:bits]),
            landing.mark.valid.eq(marks.o.valid), landing.mark.payload.eq(marks.o.payload),
            marks.o.ready.eq(landing.mark.ready),
            landing.head.eq(head), landing.level.eq(level),
            landing.vector_beats.eq(self.vector_beats), self.landed.eq(landing.vector_in),
        ]
        # A mark that collides with a vector's is delayed. Then no slot is reserved until all marks
        # are written, so a mark cannot affect its place's next lap.
        m.d.sync += behind.eq(marks.o.valid & (behind | ~marks.o.ready))
        with m.If(reserve):
            m.d.sync += tail.eq(tail + 1)
        with m.If(release):
            m.d.sync += head.eq(head + 1)
        m.d.sync += level.eq(level + reserve - release)

        # The handshake of a reservation is late, so its record is written one cycle later.
        m.submodules.slots = slots = Ram(self._slot.size, places, style="bram")
        record, place = Signal(self._slot, reset_less=True), Signal(bits + 1, reset_less=True)
        m.d.sync += [unread.up.eq(reserve), record.eq(self.reserve.payload), place.eq(tail)]
        m.d.comb += [slots.write_en.eq(unread.up), slots.write_addr.eq(place),
                     slots.write_data.eq(record),
                     # No vector will fill the place of an EMPTY slot, so its bit is written here:
                     # otherwise it would read as filled one lap later.
                     marks.i.valid.eq(unread.up & (record.kind == RecordKind.EMPTY)),
                     marks.i.payload.eq(place)]

        if self._sized:
            # The vector of a key, which has no number of keys, has ``vector_beats``.
            with m.If(~self.reserve.payload.keys.any()):
                m.d.sync += record.final_beat.eq(self.vector_beats - 1)
            m.d.comb += [landing.size_en.eq(unread.up), landing.size_place.eq(place),
                         landing.size.eq(record.final_beat)]
        waits, there, slot = self._window(m, landing, unread, slots, head, release)
        asleep = self._leave(m, landing, head, waits & there, slot, release)

        # Both stalls may last through skipped idle cycles, so they count ``time``, not clock edges.
        before, waited, was_full = Signal(32), Signal(), Signal()
        passed = Signal(32)
        m.d.comb += passed.eq(self.time - before)
        m.d.sync += [before.eq(self.time), waited.eq(waits & ~there),
                     was_full.eq(self.reserve.valid & ~free.some)]
        count(m, self.counters, reserved=unread.up, vectors_in=landing.vector_in,
              beats_in=landing.beats_in, bad_landings=landing.bad,
              beats_out=self.o.valid & self.o.ready,
              stall_full=Mux(was_full, passed, 0), stall_waiting=Mux(waited, passed, 0))
        # The oldest slot's vector has not arrived, and no slot is on its way into the window.
        m.d.comb += self.idle.eq(
            landing.idle & marks.idle & asleep & ~unread.up & ~self._moving & ~(waits & there))
        return m

    def _window(self, m: Module, landing: LandingCheck, unread: Level, slots: Ram, head: Value,
                release: Value) -> tuple:
        """Inspect slots ahead; return whether there is an oldest slot, whether its vector has
        arrived, and its record.

        The slots of the window are consecutive, so the low bits of their places distinguish them.
        """
        bits = len(head) - 1
        m.submodules.room = room = Level(self.WINDOW, init=self.WINDOW, late=True)
        m.submodules.known = known = Level(self.WINDOW, late=True)
        m.submodules.records = records = Ram(
            self._slot.size, self.WINDOW, style="lutram", latency=0)
        fetch, fetching, number = Signal(len(head)), Signal(), ceil_log2(self.WINDOW)
        # The record and the bit of the slot that was fetched in the previous cycle are read in this
        # cycle.
        read, slot, oldest = Signal(number, reset_less=True), Signal(self._slot), Signal(self._slot)
        m.d.comb += [
            fetching.eq(unread.some & room.some), unread.down.eq(fetching),
            room.down.eq(fetching), room.up.eq(release), known.down.eq(release),
            slots.read_addr.eq(fetch), landing.look.eq(fetch), landing.look_en.eq(1),
            slot.eq(slots.read_data), records.write_en.eq(known.up), records.write_addr.eq(read),
            records.write_data.eq(slot), records.read_addr.eq(head), oldest.eq(records.read_data),
        ]
        m.d.sync += [known.up.eq(fetching), read.eq(fetch)]
        with m.If(fetching):
            m.d.sync += fetch.eq(fetch + 1)
        there = Array(Signal(name=f"there{k}", reset_less=True) for k in range(self.WINDOW))
        for k, now in enumerate(there):
            place, filled = Signal(bits, reset_less=True, name=f"place{k}"), Signal()
            with m.If(fetching & (fetch[:number] == k)):
                m.d.sync += [place.eq(fetch),
                             now.eq(landing.filled_valid & (landing.filled == fetch[:bits]))]
            with m.Else():
                m.d.comb += filled.eq(landing.filled_valid & (landing.filled == place))
                m.d.sync += now.eq(now | filled | (known.up & (read == k) & (
                    landing.looked | (slot.kind == RecordKind.EMPTY))))
        self._moving = fetching | known.up
        return known.some, there[head[:number]], oldest

    def _leave(self, m: Module, landing: LandingCheck, head: Value, there: Value, slot: data.View,
               release: Signal) -> Value:
        """Read the beats of the oldest slot once it is ``there``; return whether no beat is inside.

        The next beat's address waits at the pins of the store, so the beat is read in the cycle in
        which it may leave.
        """
        bits, beats = len(head) - 1, self.beats
        # Beside each beat: whether its vector is lost.
        m.submodules.store = store = Ram(
            self._bits + self._lossy, self.places * beats, latency=2,
            style="uram" if self.places * beats >= 2048 else "bram")
        m.submodules.output = output = StreamFIFO(self._beat, self.OUT_BEATS)
        m.submodules.credit = credit = Level(self.OUT_BEATS, init=self.OUT_BEATS)
        left, decoded = self._decode(m, output.o)
        taken, last_beat, only = Signal(), Signal(reset_less=True), Signal()
        beat, address = Signal(range(max(2, beats))), Signal(len(store.read_addr))
        following = Signal(bits, init=1)
        m.d.comb += [
            store.write_en.eq(landing.write_en), store.write_addr.eq(landing.write_addr),
            store.write_data.eq(Cat(landing.write_data[:self._bits], landing.write_lost)),
            store.read_addr.eq(address),
            taken.eq(there & credit.some), credit.down.eq(taken),
            credit.up.eq(left.valid & left.ready),
            only.eq(self.vector_beats == 1), release.eq(taken & last_beat),
        ]
        # ``last_beat`` of the next beat is known before its take.
        m.d.sync += last_beat.eq(Mux(taken, Mux(last_beat, only, beat + 2 == self.vector_beats),
                                     beat + 1 == self.vector_beats))
        with m.If(taken):
            m.d.sync += [beat.eq(Mux(last_beat, 0, beat + 1)), address.eq(address + 1)]
        with m.If(release):
            m.d.sync += [address.eq(following * beats), following.eq(following + 1)]

        layout = data.StructLayout({"slot": self._slot, "last": 1, "void": 1})
        valid = [Signal(name=f"reading{k}") for k in range(2)]
        reading = [Signal(layout, name=f"beat{k}", reset_less=True) for k in range(2)]
        m.d.sync += [
            valid[0].eq(taken), valid[1].eq(valid[0]), reading[0].slot.eq(slot),
            reading[0].last.eq(last_beat), reading[0].void.eq(slot.kind == RecordKind.EMPTY),
            reading[1].eq(reading[0]),
        ]
        if self._sized:
            with m.If(beat > slot.final_beat):
                m.d.sync += reading[0].void.eq(1)
        read, out = reading[1], output.i.payload
        m.d.comb += [
            output.i.valid.eq(valid[1]),
            out.data.eq(Mux(read.void, 0, store.read_data[:self._bits])),
            out.lost.eq(~read.void & store.read_data[self._bits:].any()),
            out.kind.eq(read.slot.kind), out.sample.eq(read.slot.sample),
            out.step.eq(read.slot.step), out.sample_last.eq(read.slot.last),
            out.beat_last.eq(read.last),
            *(out[name].eq(read.slot[name])
              for name in ("keys", "mean", "repeat", "kept", "position")
              if name in self._beat.members),
        ]
        return credit.level[-1] & decoded if self._short else credit.level[-1]

    def _decode(self, m: Module, beats) -> tuple:
        """Output ``beats``; return the stream of beats that leave the store, and whether no beat is
        in the decoder."""
        if not self._short:
            wiring.connect(m, beats, wiring.flipped(self.o))
            return self.o, 1
        m.submodules.decoder = decoder = VectorDecoder(
            self._beat, self.beats, codes=self._codes)
        wiring.connect(m, beats, decoder.i)
        wiring.connect(m, decoder.o, wiring.flipped(self.o))
        m.d.comb += [decoder.value_format.eq(self.value_format),
                     decoder.value_beats.eq(self.value_beats)]
        if self._codes:
            m.d.comb += decoder.value_count.eq(self.value_count)
        return beats, decoder.idle
