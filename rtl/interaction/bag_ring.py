"""Bag ring: buffers vectors in bag order, and lets bags take turns at the adders."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import BEAT_BITS
from rtl.float import FLOAT_ADDER_LATENCY
from rtl.formats import RecordKind
from rtl.interaction.records import SlotBeat
from rtl.memory import Ram

__all__ = ["LOOP", "BagRing", "round_slots"]

LOOP = FLOAT_ADDER_LATENCY + 2
"""Cycles from the choice of a beat to the first choice of one that is added to its sum."""

COUNT_BITS = 16
"""Bits of the number of vectors in a bag."""


def round_slots(beats: int) -> int:
    """Return the most cycles of a round of turns for vectors of up to ``beats`` beats."""
    return max(_threads(b) * b for b in range(1, beats + 1))


def _threads(beats: int) -> int:
    """Return the number of bags that take turns if a vector has ``beats`` beats."""
    return -(-LOOP // beats)


class BagRing(wiring.Component):
    """Hold the beats of bags in one ring and read them so that no vector waits for a sum.

    Threads take turns, as in a barrel processor: enough that a round of turns is at least
    :data:`LOOP` cycles long, so a sum is there when its thread's turn comes again. In its turn a
    thread reads the next vector of its bag; a thread without a bag starts the oldest waiting one. A
    started bag is read to its end, and bags start in order, so only the newest can run short of
    vectors: the turns of all others are used.

    Nothing moves while no whole vector waits, however long that is.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Parameters
    ----------
    beats: largest number of beats of a vector.
    depth: beats that the ring holds, a power of two of at least ``2 * beats``.
    bags: bags between their first beat in and ``left``, a power of two.

    Ports
    -----
    i: stream of :data:`~rtl.interaction.records.SlotBeat`, vectors whole and in slot order.
    bag: number of the bag of the item on ``i``.
    left: the oldest bag is finished; its number is free.
    vector_beats: beats of a vector; may change while empty, which is after ``left`` of every bag.
    reading: ``valid``, a beat is being read; ``slot``, its place in the round of turns: beats that
        are added to each other have the same.
    o: the beat that was being read a cycle ago: ``slot``; ``bag``; ``beat`` of the vector;
        ``first`` or ``last`` vector of the bag; ``keys``, vectors of the bag up to this one.
    data: the data of beat ``o``.
    stall: vectors waited a cycle ago, but that turn's thread had none.
    idle: no whole vector waits and none is being read.
    """

    LATENCY = {("beat that ends a vector", "first beat out, if its thread's turn comes"): 3}
    RATE = "1 beat per cycle"

    def __init__(self, beats: int, depth: int, bags: int):
        self._beats, self._depth, self._bags = beats, depth, bags
        self._slots = round_slots(beats)
        beat = data.StructLayout({
            "valid": 1, "slot": range(max(2, self._slots)), "bag": range(bags),
            "beat": range(max(2, beats)), "first": 1, "last": 1, "keys": COUNT_BITS})
        super().__init__({
            "i": In(stream.Signature(SlotBeat)), "bag": Out(range(bags)), "left": In(1),
            "vector_beats": In(range(beats + 1)),
            "reading": Out(data.StructLayout({"valid": 1, "slot": range(max(2, self._slots))})),
            "o": Out(beat), "data": Out(BEAT_BITS), "stall": Out(1), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        bits = ceil_log2(self._depth)
        m.submodules.ring = ring = Ram(BEAT_BITS + 1, self._depth,
                                       style="uram" if self._depth >= 2048 else "bram")
        # Two bits above an address distinguish positions up to a whole ring apart, and show which
        # is ahead.
        tail, committed, free = (Signal(bits + 2, name=n) for n in ("tail", "committed", "free"))
        waiting = Signal(range(self._depth + 1))
        self._empty = Signal()
        start, starts_waiting, begin = Signal(bits + 2), Signal(), Signal()
        commit = self._fill(m, ring, tail, committed, free, start, starts_waiting, begin)
        self._turns(m, ring, committed, free, waiting, start, starts_waiting, begin, commit)
        return m

    def _fill(self, m: Module, ring: Ram, tail, committed, free, start, starts_waiting, begin):
        """Store beats, and where each bag begins; return whether a vector is complete."""
        bits, bags = len(tail) - 2, self._bags
        bag_bits = ceil_log2(bags)
        m.submodules.starts = starts = Ram(len(tail), bags, style="lutram", latency=0)
        # A bag is announced when its first vector is complete.
        filling, announced, started = Signal(bag_bits), Signal(bag_bits + 1), Signal(bag_bits + 1)
        inside, fresh, opened = Signal(), Signal(init=1), Signal(range(bags + 1))
        put, commit, ends, full = Signal(), Signal(), Signal(), Signal()
        item = self.i.payload
        last = item.kind != RecordKind.KEY
        m.d.comb += [
            full.eq((tail[:bits] == free[:bits]) & (tail[bits] != free[bits])),
            self.i.ready.eq(~full & (inside | (opened != bags))),
            put.eq(self.i.valid & self.i.ready),
            commit.eq(put & item.beat_last), ends.eq(commit & last), self.bag.eq(filling),
            ring.write_en.eq(put), ring.write_addr.eq(tail[:bits]),
            ring.write_data.eq(Cat(item.data, last)),
            starts.write_en.eq(commit & fresh), starts.write_addr.eq(filling),
            starts.write_data.eq(committed),
            starts.read_addr.eq(started[:bag_bits]), start.eq(starts.read_data),
            starts_waiting.eq(started != announced),
        ]
        m.d.comb += self._empty.eq(opened == 0)
        with m.If(put):
            m.d.sync += [tail.eq(tail + 1), inside.eq(~ends)]
        with m.If(commit):
            m.d.sync += [committed.eq(tail + 1), fresh.eq(last), announced.eq(announced + fresh)]
        m.d.sync += [
            filling.eq(filling + ends), opened.eq(opened + (put & ~inside) - self.left),
            started.eq(started + begin),
        ]
        self._started = started[:bag_bits]
        return commit

    def _turns(self, m: Module, ring: Ram, committed, free, waiting, start, starts_waiting, begin,
               commit) -> None:
        """Give each thread its turn."""
        most, bits = _threads(1), len(committed) - 2
        thread, last_thread = Signal(range(most)), Signal(range(most))
        beat, slot = Signal.like(self.o.beat), Signal.like(self.o.slot)
        with m.Switch(self.vector_beats):
            for beats in range(1, self._beats + 1):
                with m.Case(beats):
                    m.d.sync += last_thread.eq(_threads(beats) - 1)

        active = Array(Signal(name=f"active{k}") for k in range(most))
        heads = Array(Signal.like(committed, name=f"head{k}") for k in range(most))
        bags = Array(Signal.like(self.o.bag, name=f"bag{k}") for k in range(most))
        keys = Array(Signal(COUNT_BITS, name=f"keys{k}") for k in range(most))
        turn, step, go, going = Signal(), Signal(), Signal(), Signal()
        running, head, position = Signal(), Signal.like(committed), Signal.like(committed)
        final, bag, number = Signal(), Signal.like(self.o.bag), Signal(COUNT_BITS)
        m.d.comb += [
            turn.eq((beat == 0) & (waiting != 0)), step.eq(turn | (beat != 0)),
            final.eq(beat == (self.vector_beats - 1)[:len(beat)]),
            running.eq(active[thread]), head.eq(heads[thread]),
            position.eq(Mux(running, head, start)),
            go.eq(turn & Mux(running, head != committed, starts_waiting)),
            begin.eq(go & ~running),
            bag.eq(Mux(running, bags[thread], self._started)),
            number.eq(Mux(running, keys[thread], 0) + 1),
        ]
        with m.If(step):
            m.d.sync += [beat.eq(Mux(final, 0, beat + 1)), slot.eq(slot + 1)]
            with m.If(final):
                m.d.sync += thread.eq(thread + 1)
                with m.If(thread >= last_thread):
                    m.d.sync += [thread.eq(0), slot.eq(0)]
        # Vectors that come after these may have other beats, and so rounds of other turns.
        with m.If(self._empty):
            m.d.sync += [thread.eq(0), slot.eq(0)]
        with m.If(turn):
            m.d.sync += going.eq(go)
        with m.If(go):
            m.d.sync += [active[thread].eq(1), heads[thread].eq(position + self.vector_beats),
                         bags[thread].eq(bag), keys[thread].eq(number)]
        m.d.sync += [waiting.eq(waiting + commit - go), self.stall.eq(turn & ~go)]

        # A beat is read in the cycle after its choice, and available in the next.
        pick = Signal(self.o.shape())
        address, reader, closer = Signal(bits), Signal.like(thread), Signal.like(thread)
        with m.If(turn):
            m.d.sync += [address.eq(position), pick.bag.eq(bag), pick.first.eq(~running),
                         pick.keys.eq(number), reader.eq(thread)]
        with m.Else():
            m.d.sync += address.eq(address + 1)
        m.d.sync += [
            pick.valid.eq(go | ((beat != 0) & going)), pick.beat.eq(beat), pick.slot.eq(slot),
            closer.eq(reader),
        ]
        picked = Signal(self.o.shape())
        m.d.sync += picked.eq(pick)
        m.d.comb += [
            ring.read_en.eq(pick.valid), ring.read_addr.eq(address),
            self.reading.valid.eq(pick.valid), self.reading.slot.eq(pick.slot),
            self.o.eq(picked), self.data.eq(ring.read_data[:BEAT_BITS]),
            self.o.last.eq(ring.read_data[BEAT_BITS]),
        ]
        # Long before the thread's next turn, however many beats a vector has.
        with m.If(picked.valid & (picked.beat == 0) & self.o.last):
            m.d.sync += active[closer].eq(0)

        # Beats before the least position of a round have been read: a bag that a thread starts
        # later begins after it. While nothing waits, all beats have been read.
        sampled, opens, closes = Signal(), Signal(init=1), Signal()
        sample, least, lower = (
            Signal.like(committed, name=n) for n in ("sample", "least", "lower"))
        m.d.sync += [
            sampled.eq(turn), sample.eq(Mux(running, head, Mux(starts_waiting, start, committed))),
            closes.eq(thread >= last_thread),
        ]
        m.d.comb += lower.eq(Mux(opens | (sample - least)[bits + 1], sample, least))
        with m.If(sampled):
            m.d.sync += [least.eq(lower), opens.eq(closes)]
            with m.If(closes):
                m.d.sync += free.eq(lower)
        with m.Elif((waiting == 0) & (beat == 0) & ~pick.valid):
            m.d.sync += [free.eq(committed), least.eq(committed)]
        with m.If(self._empty):
            m.d.sync += opens.eq(1)
        m.d.comb += self.idle.eq((waiting == 0) & (beat == 0) & ~pick.valid & ~picked.valid)
