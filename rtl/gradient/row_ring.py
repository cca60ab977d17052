"""Row ring: sums of gradients wait for the rows and states that they update."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.cache.tags import slot_bits
from rtl.cache.vectors import vector_beat_layout
from rtl.config import NicConfig
from rtl.formats import STEP_BITS, Key, LookupRecord, OutgoingRecord, StateRecord
from rtl.gradient.arrivals import Arrivals
from rtl.gradient.records import ROW_NUMBER_BITS, RowLookup, update_layout
from rtl.gradient.reducer_layouts import reduced_beat_layout
from rtl.memory import Ram
from rtl.stream import Level, SkidBuffer

__all__ = ["RowRing"]


class RowRing(wiring.Component):
    """Reserve a place for each key with a summed gradient, and output complete rows in order.

    Rows are numbered in the order of their sums, modulo 2^16; the lowest bits of the number are the
    place of the row. With the last beat of its sum, a row is looked up and, in Adagrad mode, its
    state is requested, both by number. Both arrive in any order. The oldest row leaves when it is
    complete.

    A number is reused 2^16 rows later. The number in a state update stays unique, even if the
    update waits in a packet until later requests have left. A missing beat of the sum counts as +0.

    After reset, a sweep takes one cycle per place before the first beat is taken.

    Ports
    -----
    sums: input stream of :func:`~rtl.gradient.reducer_layouts.reduced_beat_layout`.
    lookups: output stream of :data:`~rtl.gradient.records.RowLookup`.
    state_requests: output stream of :data:`rtl.formats.OutgoingRecord` with a ``LookupRecord``.
    vectors: input stream of :func:`~rtl.cache.vectors.vector_beat_layout`, always ready.
    states: input stream of :data:`rtl.formats.StateRecord`, always ready. A state is dropped if its
        row does not wait for it.
    o: output stream of :func:`~rtl.gradient.records.update_layout`; ``id`` is the number.
    read_en, read_place, key, slot, held: read a row that left and is not yet freed; one cycle later
        its key, and slot and ``held`` of its vector.
    freed: the oldest row is finished; its place is free.
    adagrad: states are used; must change only while no row is inside.
    vector_beats: beats of a row; must change only while no row is inside.
    step: step of the last beat taken.
    level: rows inside, except a row whose sum is arriving.
    begins: a sum is at the input.
    empty: no sum and no row is inside.
    landed, missed, accepted, dropped: events, one or two cycles late: a row arrived; the row is in
        no cache slot; a state was accepted; a state was dropped.
    waits_place, waits_request: a beat waits for a place, or for requests to leave.
    waits_row, waits_state: in the last cycle, the oldest row waited for its vector, or for its
        state alone. These do not clear ``idle``.
    idle: inactive until an input changes.
    """

    LATENCY = {
        ("vector of a row of one beat in an idle ring", "its beat out"): 5,
        ("sums", "lookups"): 2,
    }
    RATE = "1 beat per cycle"

    def __init__(self, config: NicConfig):
        self._config = config
        self._place_bits = ceil_log2(config.update_rows)
        super().__init__({
            "sums": In(stream.Signature(reduced_beat_layout())),
            "lookups": Out(stream.Signature(RowLookup)),
            "state_requests": Out(stream.Signature(OutgoingRecord)),
            "vectors": In(stream.Signature(
                vector_beat_layout(ROW_NUMBER_BITS, config.local_cache_rows))),
            "states": In(stream.Signature(StateRecord)),
            "o": Out(stream.Signature(update_layout(ROW_NUMBER_BITS))),
            "read_en": In(1), "read_place": In(self._place_bits),
            "key": Out(Key), "slot": Out(slot_bits(config.local_cache_rows)), "held": Out(1),
            "freed": In(1), "adagrad": In(1),
            "vector_beats": In(range(config.vector_beats + 1)),
            "step": Out(STEP_BITS), "level": Out(range(config.update_rows + 1)),
            **{name: Out(1) for name in (
                "landed", "missed", "accepted", "dropped", "waits_place", "waits_request",
                "waits_row", "waits_state", "begins", "empty", "idle")}})

    def elaborate(self, platform) -> Module:
        m = Module()
        places, beats, bits = self._config.update_rows, self._config.vector_beats, self._place_bits
        self._beat_bits, self._style = ceil_log2(beats), "lutram" if places <= 64 else "bram"
        beats_style = "lutram" if places * beats <= 64 else (
            "bram" if places * beats < 2048 else "uram")
        for name, width, depth, style in (
                ("keys", Key.size, places, self._style),
                ("slots", len(self.slot) + 1, places, self._style),
                ("state_ram", 32, places, self._style), ("present", beats, places, self._style),
                ("gradients", self._config.store_bits, places << self._beat_bits, beats_style),
                ("rows", self._config.store_bits, places << self._beat_bits, beats_style)):
            m.submodules[name] = Ram(width, depth, style=style)
        m.submodules.rows_here = rows_here = Arrivals(places)
        m.submodules.states_here = states_here = Arrivals(places)
        head, feed, tail = (Signal(ROW_NUMBER_BITS, name=n) for n in ("head", "feed", "tail"))
        moved = Signal()
        m.d.sync += tail.eq(tail + self.freed)

        whole, taking = self._take(m, head, ~rows_here.sweeping)
        number = self._vectors(m, rows_here)
        state_moving = self._states(m, states_here, tail, number)
        can = Signal()
        found = self._find(m, whole, ~can, rows_here, states_here)
        left, feeding = self._feed(m, feed, found, can)
        # Activity of a cycle clears ``idle`` in the next one, because the computation is long.
        m.d.sync += moved.eq(whole | self.landed | self.accepted | found | feeding)
        m.d.sync += [head.eq(head + whole), feed.eq(feed + left),
                     self.level.eq(self.level + whole - self.freed)]
        for ram, value in ((m.submodules.keys, Cat(self.key)),
                           (m.submodules.slots, Cat(self.slot, self.held))):
            m.d.comb += [ram.read_en.eq(self.read_en), ram.read_addr.eq(self.read_place),
                         value.eq(ram.read_data)]
        assert bits < ROW_NUMBER_BITS
        m.d.comb += self.idle.eq(
            ~rows_here.sweeping & ~taking & ~state_moving & ~moved & ~self.landed
            & ~found)
        return m

    def _take(self, m: Module, head: Signal, swept: Value) -> tuple[Value, Value]:
        """Store sums in their places; request rows and states.

        Return the event that a sum is complete, and whether anything is active here.
        """
        m.submodules.entry = entry = SkidBuffer(reduced_beat_layout())
        m.submodules.lookup_buffer = lookups = SkidBuffer(RowLookup)
        m.submodules.request_buffer = requests = SkidBuffer(OutgoingRecord)
        wiring.connect(m, wiring.flipped(self.sums), entry.i)
        wiring.connect(m, lookups.o, wiring.flipped(self.lookups))
        wiring.connect(m, requests.o, wiring.flipped(self.state_requests))
        beat, place = entry.o.payload, head[:self._place_bits]
        full, ask, take, whole = (Signal(name=n) for n in ("full", "ask", "take", "whole"))
        record, seen, present = Signal(LookupRecord), Signal(self._config.vector_beats), Signal(
            self._config.vector_beats)
        m.d.comb += [
            self.begins.eq(entry.o.valid), self.empty.eq(entry.idle & (self.level == 0)),
            full.eq(self.level[-1]),
            ask.eq(swept & lookups.i.ready & requests.i.ready),
            take.eq(entry.o.valid & ~full & ask), entry.o.ready.eq(~full & ask),
            whole.eq(take & beat.last),
            present.eq(seen | (1 << beat.beat)[:len(present)]),
            lookups.i.valid.eq(whole), lookups.i.payload.key.eq(beat.key),
            lookups.i.payload.meta.eq(head),
            record.row.eq(beat.key.row), record.table.eq(beat.key.table), record.landing.eq(head),
            requests.i.valid.eq(whole & self.adagrad),
            requests.i.payload.step.eq(beat.step), requests.i.payload.record.eq(record),
            self.waits_place.eq(entry.o.valid & full),
            self.waits_request.eq(entry.o.valid & ~full & ~ask & swept),
        ]
        with m.If(take):
            m.d.sync += [self.step.eq(beat.step), seen.eq(Mux(beat.last, 0, present))]
        for name, event, value in (("keys", whole, Cat(beat.key)), ("present", whole, present)):
            ram = m.submodules[name]
            m.d.comb += [ram.write_en.eq(event), ram.write_addr.eq(place),
                         ram.write_data.eq(value)]
        gradients = m.submodules.gradients
        m.d.comb += [
            gradients.write_en.eq(take), gradients.write_data.eq(beat.data),
            gradients.write_addr.eq(Cat(beat.beat[:self._beat_bits], place))]
        return whole, Value.cast(~(entry.idle & lookups.idle & requests.idle))

    def _vectors(self, m: Module, here: Arrivals) -> Value:
        """Store rows in their places; return the number of the row that arrived."""
        vector, beat = self.vectors.payload, Signal(range(max(2, self._config.vector_beats)))
        place, whole = vector.meta[:self._place_bits], Signal()
        number = Signal(ROW_NUMBER_BITS, reset_less=True)
        rows, slots = m.submodules.rows, m.submodules.slots
        m.d.comb += [
            self.vectors.ready.eq(1), whole.eq(self.vectors.valid & vector.last),
            rows.write_en.eq(self.vectors.valid), rows.write_data.eq(vector.data),
            rows.write_addr.eq(Cat(beat[:self._beat_bits], place)),
            slots.write_en.eq(whole), slots.write_addr.eq(place),
            slots.write_data.eq(Cat(vector.slot, vector.held)),
            here.come.eq(self.landed), here.came.eq(number),
        ]
        m.d.sync += [self.landed.eq(whole), self.missed.eq(whole & ~vector.held),
                     number.eq(vector.meta)]
        with m.If(self.vectors.valid):
            m.d.sync += beat.eq(Mux(vector.last, 0, beat + 1))
        return number

    def _states(self, m: Module, here: Arrivals, tail: Signal, landed: Value) -> Value:
        """Store requested states in their places; return whether one is in flight.

        Stages: 1: its row is inside. 2: it has no state yet. 3: accept.
        """
        came = self.states.payload
        first, second = (Signal(StateRecord, name=n, reset_less=True) for n in ("first", "second"))
        valid1, valid2, inside, wanted, again = (Signal(name=n) for n in (
            "valid1", "valid2", "inside", "wanted", "again"))
        m.d.sync += [
            valid1.eq(self.states.valid), first.eq(came),
            # A row that leaves the ring meanwhile has its state.
            inside.eq((came.landing - tail)[:ROW_NUMBER_BITS] < self.level),
            again.eq(came.landing == first.landing),
            # The previous state may be accepted in this cycle, for the same row.
            valid2.eq(valid1), second.eq(first),
            wanted.eq(inside & ~here.known & ~(self.accepted & again) & self.adagrad),
        ]
        ram = m.submodules.state_ram
        m.d.comb += [
            self.states.ready.eq(1), self.accepted.eq(valid2 & wanted),
            self.dropped.eq(valid2 & ~wanted), here.number.eq(first.landing),
            # Rows without a state are marked too, because a later Adagrad step relies on the parity
            # of the rounds.
            here.came.eq(Mux(self.adagrad, second.landing, landed)),
            here.come.eq(Mux(self.adagrad, self.accepted, self.landed)),
            ram.write_en.eq(self.accepted), ram.write_data.eq(second.state),
            ram.write_addr.eq(second.landing[:self._place_bits]),
        ]
        return valid1 | valid2

    def _find(self, m: Module, whole: Value, first: Value, rows_here: Arrivals,
              states_here: Arrivals) -> Signal:
        """Find the next complete row; ``first``: no found row waits. Return the event that a row is
        found.

        The event is a register; the row after it is checked meanwhile.
        """
        place, after = Signal(ROW_NUMBER_BITS), Signal(ROW_NUMBER_BITS, init=1)
        m.submodules.left = left = Level(self._config.update_rows)
        found, some, stateful = Signal(), Signal(), Signal()
        for here in (rows_here, states_here):
            m.d.comb += here.asked.eq(Mux(found, after, place))
        oldest = some & first & ~found
        m.d.comb += [
            left.up.eq(whole), left.down.eq(found), some.eq(Mux(found, left.many, left.some)),
            stateful.eq(states_here.here | ~self.adagrad),
        ]
        m.d.sync += [
            self.waits_row.eq(oldest & ~rows_here.here),
            self.waits_state.eq(oldest & rows_here.here & ~stateful),
            found.eq(some & rows_here.here & stateful), place.eq(place + found),
            after.eq(after + found)]
        return found

    def _feed(self, m: Module, feed: Signal, found: Value, can: Signal) -> tuple[Value, Value]:
        """Output the complete rows, oldest first; ``can``: a row is ready.

        Return the event that the last beat of a row is read, and whether anything is active here.
        """
        place = feed[:self._place_bits]
        m.submodules.ready = ready = Level(self._config.update_rows)
        issue, final, valid, left = (
            Signal(name=n) for n in ("issue", "final", "valid", "left"))
        beat, out_beat, last_beat = (Signal(range(max(2, self._config.vector_beats)), name=n)
                                     for n in ("beat", "out_beat", "last_beat"))
        m.d.comb += [issue.eq(can & (~valid | self.o.ready)), final.eq(beat == last_beat),
                     left.eq(issue & final), ready.up.eq(found), ready.down.eq(left),
                     can.eq(ready.some)]
        m.d.sync += last_beat.eq(self.vector_beats - 1)
        out = Signal(data.StructLayout({"id": ROW_NUMBER_BITS, "last": 1}))
        with m.If(issue):
            m.d.sync += [valid.eq(1), out.id.eq(feed), out.last.eq(final), out_beat.eq(beat),
                         beat.eq(Mux(final, 0, beat + 1))]
        with m.Elif(self.o.ready):
            m.d.sync += valid.eq(0)
        rams = m.submodules
        for ram, address in ((rams.gradients, Cat(beat[:self._beat_bits], place)),
                             (rams.rows, Cat(beat[:self._beat_bits], place)),
                             (rams.state_ram, place), (rams.present, place)):
            m.d.comb += [ram.read_en.eq(issue), ram.read_addr.eq(address)]
        item = self.o.payload
        m.d.comb += [
            self.o.valid.eq(valid), item.row.eq(rams.rows.read_data),
            item.state.eq(rams.state_ram.read_data), item.id.eq(out.id), item.last.eq(out.last)]
        with m.If(rams.present.read_data.bit_select(out_beat, 1)):
            m.d.comb += item.gradient.eq(rams.gradients.read_data)
        return left, Value.cast(can | valid)
