"""Bag ring: buffers vectors in bag order, and lets bags share the adders in turn."""

from itertools import pairwise

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import BEAT_BITS
from rtl.float import FLOAT_ADDER_LATENCY
from rtl.formats import RecordKind
from rtl.interaction.records import slot_beat
from rtl.memory import Ram
from rtl.stream import Level

__all__ = ["LOOP", "BagRing", "round_slots"]

LOOP = FLOAT_ADDER_LATENCY + 2
"""Cycles from the choice of a beat to the first choice of a beat that is added to its sum."""

CLOSED = 4
"""Cycles from the choice of a bag's last vector to the release of its thread."""

COUNT_BITS = 16
"""Bits of the number of vectors in a bag."""


def round_slots(beats: int) -> int:
    """Return the most cycles of a round of turns for vectors of up to ``beats`` beats."""
    return max(_threads(b) * b for b in range(1, beats + 1))


def _threads(beats: int) -> int:
    """Return the number of bags that share the adders if a vector has ``beats`` beats."""
    return -(-LOOP // beats)


class BagRing(wiring.Component):
    """Store the beats of bags in one ring, and read them such that no vector waits for a sum.

    Threads take turns, as in a barrel processor. A round of turns is at least :data:`LOOP` cycles
    long, so a sum is ready when its thread's turn comes again. In its turn a thread reads the next
    vector of its bag; a thread without a bag starts the oldest waiting bag. A started bag is read
    to its end, and bags start in order. Only the newest bag can therefore run out of vectors; the
    turns of all other threads are used.

    The block is inactive while no complete vector waits.

    Parameters
    ----------
    beats: largest number of beats of a vector.
    depth: beats that the ring holds, a power of two of at least ``2 * beats``.
    bags: bags between their first beat in and ``left``, a power of two.
    pooled: slots may be bags that their owner has pooled.
    positions: see :func:`rtl.formats.repeat_fields`.

    Ports
    -----
    i: stream of :func:`~rtl.interaction.records.slot_beat`, whole vectors in slot order.
    bag: number of the bag of the item at ``i``.
    left: the oldest bag is finished; its number is free.
    vector_beats: beats of a vector; may change while the ring is empty, which is after ``left`` of
        every bag.
    coming: ``valid``, a beat leaves in the next cycle; ``slot``, its place in the round of turns,
        equal for beats that are added to each other; ``first``, as in ``o``.
    o: the beat that leaves: ``slot``; ``bag``; ``beat`` of the vector; ``first`` or ``last`` vector
        of the bag; ``keys``, vectors of the bag up to this vector, or the keys of a bag that its
        owner has pooled.
    data: data of beat ``o``.
    stall: a beat could have left in the next cycle, but the thread of that turn has no vector,
        although other vectors wait.
    idle: no complete vector waits and none is being read.
    """

    LATENCY = {("beat that ends a vector", "first beat out, if its thread's turn comes"): 4}
    RATE = "1 beat per cycle"

    def __init__(self, beats: int, depth: int, bags: int, *, pooled: bool = False,
                 positions: int = 0):
        self._beats, self._depth, self._bags, self._pooled = beats, depth, bags, pooled
        slot = range(max(2, round_slots(beats)))
        beat = data.StructLayout({
            "valid": 1, "slot": slot, "bag": range(bags), "beat": range(max(2, beats)),
            "first": 1, "last": 1, "keys": COUNT_BITS})
        super().__init__({
            "i": In(stream.Signature(slot_beat(pooled, positions))),
            "bag": Out(range(bags)), "left": In(1),
            "vector_beats": In(range(beats + 1)),
            "coming": Out(data.StructLayout({"valid": 1, "slot": slot, "first": 1})),
            "o": Out(beat), "data": Out(BEAT_BITS), "stall": Out(1), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        bits, bag_bits = ceil_log2(self._depth), ceil_log2(self._bags)
        m.submodules.ring = ring = Ram(BEAT_BITS + 1, self._depth,
                                       style="uram" if self._depth >= 2048 else "bram", latency=2)
        # Complete vectors in the ring; bags that no thread has started; numbers for new bags.
        m.submodules.waiting = self._waiting = Level(self._depth)
        m.submodules.queued = self._queued = Level(self._bags)
        m.submodules.numbers = self._numbers = Level(self._bags, init=self._bags)
        # Two bits above an address distinguish positions up to a whole ring apart, and show which
        # is ahead.
        self._committed, self._free, self._start = (
            Signal(bits + 2, name=name) for name in ("committed", "free", "start"))
        self._begin, self._number, self._empty = Signal(), Signal(bag_bits), Signal()
        m.d.comb += [self._numbers.up.eq(self.left), self._empty.eq(self._numbers.level[-1])]
        self._fill(m, ring)
        self._turns(m, ring)
        return m

    def _fill(self, m: Module, ring: Ram) -> None:
        """Store beats, and the begin of each bag."""
        committed, free, bits = self._committed, self._free, ceil_log2(self._depth)
        tail, after = Signal.like(committed), Signal.like(committed, init=1)
        filling, inside, fresh, full = Signal.like(self._number), Signal(), Signal(init=1), Signal()
        put, commit, ends, last = Signal(), Signal(), Signal(), Signal()
        item = self.i.payload

        def no_room(position: Value):
            return (position[:bits] == free[:bits]) & (position[bits] != free[bits])

        m.d.comb += [
            self.i.ready.eq(~full & (inside | self._numbers.some)),
            put.eq(self.i.valid & self.i.ready), last.eq(item.kind != RecordKind.KEY),
            commit.eq(put & item.beat_last), ends.eq(commit & last), self.bag.eq(filling),
            self._numbers.down.eq(put & ~inside), self._waiting.up.eq(commit),
        ]
        # Freed places are counted one cycle late.
        m.d.sync += [full.eq(Mux(put, no_room(after), no_room(tail))), filling.eq(filling + ends)]
        with m.If(put):
            m.d.sync += [tail.eq(after), after.eq(after + 1), inside.eq(~ends)]
        with m.If(commit):
            m.d.sync += [committed.eq(after), fresh.eq(last)]
        # A vector is read at the earliest two cycles after its last beat, so registers hold the
        # beats for the RAM.
        storing, place = Signal(), Signal(bits, reset_less=True)
        stored = Signal(ring.width, reset_less=True)
        m.d.sync += [storing.eq(put), place.eq(tail), stored.eq(Cat(item.data, last))]
        m.d.comb += [
            ring.write_en.eq(storing), ring.write_addr.eq(place), ring.write_data.eq(stored)]

        # A bag is announced when its first vector is complete. ``start`` is the begin of the oldest
        # bag that no thread has started or, without such a bag, of the next bag to be announced.
        m.submodules.starts = starts = Ram(len(committed), self._bags, style="lutram", latency=0)
        second = Signal.like(self._number, init=1)
        m.d.comb += [
            self._queued.up.eq(commit & fresh), self._queued.down.eq(self._begin),
            starts.write_en.eq(commit & fresh), starts.write_addr.eq(filling),
            starts.write_data.eq(committed), starts.read_addr.eq(second),
        ]
        with m.If(self._begin):
            m.d.sync += [self._number.eq(second), second.eq(second + 1)]
        with m.If(self._begin | ~self._queued.some):
            m.d.sync += self._start.eq(Mux(self._queued.many, starts.read_data, committed))

    def _turns(self, m: Module, ring: Ram) -> None:
        """Give each thread its turn."""
        committed, most, bits = self._committed, _threads(1), ceil_log2(self._depth)
        thread, following, last_thread, single = (
            Signal(range(most)), Signal(range(most)), Signal(range(most)), Signal())
        beat, slot = Signal.like(self.o.beat), Signal.like(self.o.slot)
        with m.Switch(self.vector_beats):
            for beats in range(1, self._beats + 1):
                with m.Case(beats):
                    m.d.sync += last_thread.eq(_threads(beats) - 1)
                    m.d.comb += single.eq(_threads(beats) == 1)

        # State of the thread of the next turn: it is read at the end of the previous turn.
        active = Array(Signal(name=f"active{k}") for k in range(most))
        state = data.StructLayout({"head": len(committed), "bag": len(self._number),
                                   "keys": COUNT_BITS})
        m.submodules.states = states = Ram(state.size, most, style="lutram", latency=0)
        now, later, then = Signal(state, reset_less=True), Signal(state), Signal(state)
        running, more, going = Signal(), Signal(), Signal()
        turn, step, go, final, ends_turn, closes = (Signal() for _ in range(6))
        position = Signal.like(committed)
        m.d.comb += [
            turn.eq((beat == 0) & self._waiting.some), step.eq(turn | (beat != 0)),
            final.eq(beat == (self.vector_beats - 1)[:len(beat)]), ends_turn.eq(step & final),
            go.eq(turn & Mux(running, more, self._queued.some)),
            self._begin.eq(go & ~running), self._waiting.down.eq(go),
            position.eq(Mux(running, now.head, self._start)), closes.eq(thread >= last_thread),
            then.head.eq(position + self.vector_beats),
            then.bag.eq(Mux(running, now.bag, self._number)),
            then.keys.eq(Mux(running, now.keys, 0) + 1),
            states.write_en.eq(go), states.write_addr.eq(thread), states.write_data.eq(then),
            states.read_addr.eq(following), later.eq(states.read_data),
        ]
        with m.If(step):
            m.d.sync += [beat.eq(Mux(final, 0, beat + 1)), slot.eq(slot + 1)]
        # Every arriving vector belongs to the newest bag, so its thread has one more.
        m.d.sync += more.eq(more | self._waiting.up)
        with m.If(ends_turn):
            m.d.sync += [
                thread.eq(following),
                following.eq(Mux(following >= last_thread, 0, following + 1)),
                now.eq(later), running.eq(active[following]),
                more.eq((later.head != committed) | self._waiting.up),
            ]
            with m.If(closes):
                m.d.sync += slot.eq(0)
        # Later vectors may have another number of beats, and so rounds of other turns.
        with m.If(self._empty):
            m.d.sync += [thread.eq(0), slot.eq(0), following.eq(~single), running.eq(0)]
        with m.If(turn):
            m.d.sync += going.eq(go)
        with m.If(go):
            m.d.sync += active[thread].eq(1)

        # A beat is read in the cycle after its choice; its data are in a register two cycles later.
        picks = [Signal(self.o.shape(), name=f"pick{k}", reset_less=True) for k in range(3)]
        valid = [Signal(name=f"valid{k}") for k in range(3)]
        address = Signal(bits, reset_less=True)
        readers = [Signal.like(thread, name=f"reader{k}", reset_less=True) for k in range(3)]
        with m.If(turn):
            m.d.sync += [address.eq(position), picks[0].bag.eq(then.bag),
                         picks[0].first.eq(~running), picks[0].keys.eq(then.keys),
                         readers[0].eq(thread)]
        with m.Else():
            m.d.sync += address.eq(address + 1)
        stalls = Signal(2)
        m.d.sync += [
            picks[0].beat.eq(beat), picks[0].slot.eq(slot), picks[1].eq(picks[0]),
            picks[2].eq(picks[1]), *(b.eq(a) for a, b in pairwise(readers)),
            *(b.eq(a) for a, b in pairwise([go | ((beat != 0) & going), *valid])),
            stalls.eq(Cat(turn & ~go, stalls[0])),
        ]
        m.d.comb += [
            ring.read_en.eq(valid[0]), ring.read_addr.eq(address),
            self.coming.valid.eq(valid[1]), self.coming.slot.eq(picks[1].slot),
            self.coming.first.eq(picks[1].first),
            self.o.eq(picks[2]), self.o.valid.eq(valid[2]),
            Cat(self.data, self.o.last).eq(ring.read_data), self.stall.eq(stalls[1]),
            self.idle.eq(~self._waiting.some & (beat == 0) & ~Cat(valid).any()),
        ]
        if self._pooled:
            self._count(m, picks[1].bag)
        # Before the state of the thread is read again.
        assert LOOP > CLOSED
        with m.If(self.o.valid & (self.o.beat == 0) & self.o.last):
            m.d.sync += active[readers[2]].eq(0)
        self._release(m, turn, closes, Mux(running, now.head, Mux(
            self._queued.some, self._start, committed)), (beat == 0) & ~valid[0])

    def _count(self, m: Module, bag: Value) -> None:
        """Give the keys of a bag that its owner has pooled, in the cycle after ``bag``."""
        item, given = self.i.payload, data.StructLayout({"keys": COUNT_BITS, "some": 1})
        m.submodules.counts = counts = Ram(given.size, self._bags, style="lutram")
        count = data.View(given, counts.read_data)
        m.d.comb += [
            counts.write_en.eq(self.i.valid & self.i.ready), counts.write_addr.eq(self.bag),
            counts.write_data.eq(Cat(item.keys, item.keys.any())), counts.read_addr.eq(bag),
        ]
        with m.If(count.some):
            m.d.comb += self.o.keys.eq(count.keys)

    def _release(self, m: Module, turn: Value, closes: Value, position: Value,
                 rests: Value) -> None:
        """Free the beats that have been read.

        They are before the least position of a round: a bag that a thread starts later begins after
        it. If no vector waits and the reader ``rests``, all beats have been read.
        """
        sampled, opens, closed = Signal(), Signal(init=1), Signal()
        sign = ceil_log2(self._depth) + 1
        sample, least, lower = (Signal.like(self._committed, name=n, reset_less=n == "sample")
                                for n in ("sample", "least", "lower"))
        m.d.sync += [sampled.eq(turn), sample.eq(position), closed.eq(closes)]
        m.d.comb += lower.eq(Mux(opens | (sample - least)[sign], sample, least))
        with m.If(sampled):
            m.d.sync += [least.eq(lower), opens.eq(closed)]
            with m.If(closed):
                m.d.sync += self._free.eq(lower)
        with m.Elif(~self._waiting.some & rests):
            m.d.sync += [self._free.eq(self._committed), least.eq(self._committed)]
        with m.If(self._empty):
            m.d.sync += opens.eq(1)
