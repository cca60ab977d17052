"""Bag repeats: finds bags that equal the bag at their position in the previous sample."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.bags import WordRing
from rtl.bags.layouts import Segment
from rtl.bags.word_ring import RingSegment
from rtl.config import NicConfig
from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT, SAMPLE_BITS, STEP_BITS, QueryBag, RecordKind
from rtl.memory import Ram
from rtl.monitor.counters import CounterLayout, count
from rtl.query.checker import slot_layout
from rtl.stream import CreditQueue, SkidBuffer, StreamFIFO

__all__ = ["REPEATS_COUNTERS", "BagRepeats", "held_segments"]

REPEATS_COUNTERS = CounterLayout("bags", "repeats", "repeated_keys", "beyond")

NEAR = 3
"""Items from the read of a position's record to the first read of the record that it writes."""

QUEUE = 16
"""Slots with a reserved verdict: each uses a place for 13 cycles."""

_Head = data.StructLayout({"keys": QueryBag["keys"].width, "table": QueryBag["table"].width,
                           "wide": 1, "weighted": 1})
_Verdict = data.StructLayout({"repeat": 1, "kept": 1})
_BEHIND = 1 + WordRing.LATENCY["tail", "its verdict"]


def held_segments(config: NicConfig) -> int:
    """Return the segments that may wait for verdicts, a power of two: the longest bag, whose tail
    decides, and a segment for each reserved verdict."""
    return 1 << (config.bag_words // RECORDS_PER_BEAT + 2 + QUEUE - 1).bit_length()


class BagRepeats(wiring.Component):
    """Replace each bag that repeats a bag of the previous sample by an EMPTY slot with ``repeat``.

    The position of a bag is its number in its sample; it counts all bags. A bag that pools at its
    owner repeats the bag at its position of the previous sample if all of these are equal: table,
    ``wide`` and ``weighted``, number and order of the keys, every row, every bit of every weight.
    The previous sample has the same step and the preceding number. So nothing repeats across a step
    or a rejected sample. Other bags neither repeat nor are repeated. The end of a share is a sample
    with an empty bag.

    The segments of a repeated bag are dropped.

    **Sizes.** A bag is remembered if its position is below ``config.repeat_vectors``, and its words
    behind the head fit in the ring of ``config.repeat_words``. The ring then contains the words of
    the previous sample from this position on, and of this sample before it. A bag that is not
    remembered is counted in ``beyond``; the bag at its position of the next sample repeats nothing.

    Parameters: ``config``, with ``owner_bags`` and ``repeat_words``.

    Ports
    -----
    slots: stream of :func:`rtl.query.slot_layout`, whole samples.
    segments: stream of :data:`rtl.bags.layouts.Segment`, the bags among the slots, in order.
    o: stream of :func:`rtl.query.slot_layout` with positions. A ``kept`` bag may be repeated.
    bags: stream of :data:`rtl.bags.layouts.Segment`, the bags among the slots of ``o``.
    enable: find repeats; may change while idle.
    counters: ``bags`` that pool at their owner; ``repeats`` among them, with ``repeated_keys``;
        bags ``beyond`` the sizes.
    idle: no slot inside.

    Raises ``TypeError`` if ``config`` is not a :class:`~rtl.config.NicConfig`, ``ValueError`` if it
    has no ``owner_bags`` or no ``repeat_words``.
    """

    LATENCY = {("slot, or tail of its bag", "the same slot"): 12}
    RATE = "1 slot or segment per cycle; 2 cycles more after a sample of 1 or 2 bags"

    def __init__(self, config: NicConfig):
        if not isinstance(config, NicConfig):
            raise TypeError(f"config must be a NicConfig, not {config!r}")
        config.check_repeats()
        self._words, self._positions = config.repeat_words, config.repeat_positions
        self._size = bits_for(config.bag_words)
        self._depth = held_segments(config)
        self._record = data.StructLayout({
            "valid": 1, "head": _Head, "start": range(self._words), "words": self._size})
        self._slot = slot_layout(True, self._positions)
        super().__init__({
            "slots": In(stream.Signature(slot_layout(True))),
            "segments": In(stream.Signature(Segment)),
            "o": Out(stream.Signature(self._slot)), "bags": Out(stream.Signature(Segment)),
            "enable": In(1), "counters": Out(REPEATS_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.front = front = SkidBuffer(slot_layout(True))
        m.submodules.words = words = SkidBuffer(Segment)
        m.submodules.waiting = waiting = StreamFIFO(
            data.StructLayout({"slot": slot_layout(True), "position": range(self._positions)}),
            2 * QUEUE)
        m.submodules.held = held = StreamFIFO(Segment, self._depth)
        m.submodules.queue = queue = CreditQueue(_Verdict, QUEUE)
        wiring.connect(m, wiring.flipped(self.slots), front.i)
        wiring.connect(m, wiring.flipped(self.segments), words.i)
        item = self._enter(m, front, words, waiting, held, queue)
        self._remember(m, item, queue)
        quiet = self._leave(m, waiting, held, queue)
        m.d.comb += self.idle.eq(front.idle & words.idle & waiting.idle & held.idle & quiet)
        return m

    def _enter(self, m: Module, front: SkidBuffer, words: SkidBuffer, waiting: StreamFIFO,
               held: StreamFIFO, queue: CreditQueue) -> Signal:
        """Take a slot without a bag, or a segment of a bag, in each cycle; return it a cycle
        later."""
        slot, segment = front.o.payload, words.o.payload
        layout = data.StructLayout({
            "valid": 1, "bag": 1, "begins": 1, "ends": 1, "first": 1, "follows": 1, "known": 1,
            "writes": 1, "stores": 1, "position": range(self._positions), "head": _Head,
            "words": self._size, "segment": Segment})
        item, taken = Signal(layout), Signal(layout, reset_less=True)
        go, ends, counts, small, inside, first = (
            Signal(name=name, init=name == "first")
            for name in ("go", "ends", "counts", "small", "inside", "first"))
        # The position of the slot's bag, and the number of bags in the sample before; both at
        # most one beyond the positions. The number of the sample if no sample was rejected.
        position, before = Signal(range(self._positions + 1)), Signal(range(self._positions + 1))
        sample, step = Signal(SAMPLE_BITS, reset_less=True), Signal(STEP_BITS, reset_less=True)
        head, pairs, near = taken.head, Signal(15), Signal(range(NEAR))
        record = data.View(QueryBag, segment.words.word_select(segment.first, RECORD_BITS))
        room = queue.free & waiting.i.ready & held.i.ready & (near == 0)
        m.d.comb += [
            go.eq(front.o.valid & (~slot.bag | words.o.valid) & room),
            ends.eq(~slot.bag | segment.tail), small.eq(position != self._positions),
            counts.eq(slot.kind != RecordKind.KEY),
            front.o.ready.eq(go & ends), words.o.ready.eq(go & slot.bag),
            queue.reserve.eq(go & ends), waiting.i.valid.eq(go & ends),
            waiting.i.payload.slot.eq(slot), waiting.i.payload.position.eq(position),
            held.i.valid.eq(go & slot.bag), held.i.payload.eq(segment),
            taken.bag.eq(slot.bag), taken.begins.eq(~inside), taken.ends.eq(ends),
            taken.first.eq(first & ~inside), taken.writes.eq(counts & small),
            taken.follows.eq((slot.sample == sample) & (slot.step == step)),
            taken.known.eq(counts & (position < before)),
            taken.stores.eq(slot.bag & self.enable & small),
            taken.position.eq(position), taken.segment.eq(segment),
            head.keys.eq(slot.key.row), head.table.eq(slot.key.table),
            head.wide.eq(record.wide), head.weighted.eq(record.weighted),
            pairs.eq(head.keys[1:] + head.keys[0]),
            taken.words.eq(Mux(slot.bag, Mux(head.wide, head.keys, pairs)
                               + Mux(head.weighted, pairs, 0), 0)),
        ]
        with m.If(near != 0):
            m.d.sync += near.eq(near - 1)
        with m.If(go):
            m.d.sync += inside.eq(~ends)
            with m.If(ends):
                m.d.sync += first.eq(slot.last)
                with m.If(counts & small):
                    m.d.sync += position.eq(position + 1)
                with m.If(slot.last):
                    m.d.sync += [
                        position.eq(0), sample.eq(slot.sample + 1), step.eq(slot.step),
                        before.eq(position + small)]
                    with m.If(position < NEAR - 1):
                        m.d.sync += near.eq(NEAR - 1)
        m.d.sync += [item.eq(taken), item.valid.eq(go)]
        # What later segments of a bag do not have.
        with m.If(inside):
            m.d.sync += item.head.eq(item.head)

        m.submodules.records = self._records = Ram(
            self._record.size, self._positions,
            style="lutram" if self._positions <= 64 else "bram")
        m.d.comb += self._records.read_addr.eq(position)
        return item

    def _remember(self, m: Module, item, queue: CreditQueue) -> None:
        """Store the words of each bag that fits, compare them, and give the verdicts."""
        size, most = self._size, self._words
        m.submodules.ring = ring = WordRing(most)
        records, record = self._records, data.View(self._record, self._records.read_data)
        known, gone = Signal(), Signal(size)
        m.d.comb += [known.eq(item.known & item.follows & record.valid & item.begins),
                     gone.eq(Mux(known, record.words, 0))]
        # Used words after this bag: with and without its own.
        here = Signal(data.StructLayout(item.shape().members | {
            "start": range(most), "equal_head": 1, "margin": signed(bits_for(most) + 1),
            "change": data.ArrayLayout(signed(size + 1), 2)}))
        m.d.sync += [
            *(here[name].eq(item[name]) for name in item.shape().members),
            here.start.eq(record.start), here.margin.eq(most - item.words),
            here.equal_head.eq(known & item.bag & (record.head == item.head)),
            here.change[0].eq(-gone), here.change[1].eq(item.words - gone),
        ]

        # Words of the previous sample from this bag on, and of this sample; those of this sample.
        used, own, tail = Signal(range(most + 1)), Signal(range(most + 1)), Signal(range(most))
        base, old, new = Signal.like(used), Signal(range(most)), Signal(range(most))
        old_next, new_next = (Signal(range(most), name=name, reset_less=True)
                              for name in ("old_next", "new_next"))
        fits, kept, writes = Signal(), Signal(), Signal()
        segment, words = here.segment, Signal(range(RECORDS_PER_BEAT + 1))
        m.d.comb += [
            base.eq(Mux(here.first, Mux(here.follows, own, 0), used)),
            fits.eq(here.stores & (base <= here.margin)),
            kept.eq(Mux(here.begins, fits, writes)),
            old.eq(Mux(here.begins, here.start, old_next)),
            new.eq(Mux(here.begins, tail, new_next)), words.eq(segment.size - segment.head),
            records.write_en.eq(here.valid & here.begins & here.writes),
            records.write_addr.eq(here.position),
            records.write_data.eq(Cat(fits, here.head, tail, here.words)),
        ]
        with m.If(here.valid):
            m.d.sync += [writes.eq(kept), old_next.eq(old + words), new_next.eq(new + words)]
            with m.If(here.begins):
                added = Mux(fits, here.words, 0)
                m.d.sync += [used.eq(base + here.change[fits]), tail.eq(tail + added),
                             own.eq(Mux(here.first, 0, own) + added)]
        given = Signal(data.StructLayout({"valid": 1, "payload": RingSegment(most)}))
        m.d.sync += [
            given.valid.eq(here.valid & here.bag), given.payload.segment.eq(segment),
            given.payload.wide.eq(here.head.wide), given.payload.weighted.eq(here.head.weighted),
            given.payload.odd.eq(here.head.keys[0]), given.payload.old.eq(old),
            given.payload.new.eq(new), given.payload.compares.eq(here.equal_head),
            given.payload.writes.eq(kept),
        ]
        m.d.comb += ring.i.eq(given)
        ended = [here.valid & here.ends] + [Signal(name=f"ended{k}") for k in range(_BEHIND)]
        stored = [kept] + [Signal(name=f"stored{k}", reset_less=True) for k in range(_BEHIND)]
        m.d.sync += [after.eq(before) for line in (ended, stored)
                     for before, after in pairwise(line)]
        m.d.comb += [queue.i.valid.eq(ended[-1]), queue.i.payload.kept.eq(stored[-1]),
                     queue.i.payload.repeat.eq(ring.o.valid & ring.o.equal)]

    def _leave(self, m: Module, waiting: StreamFIFO, held: StreamFIFO, queue: CreditQueue):
        """Output slots with their verdicts, and the segments of bags that repeat no bag; return
        whether no verdict waits for its segments."""
        m.submodules.decided = decided = StreamFIFO(1, QUEUE)
        slot, verdict, o = waiting.o.payload.slot, queue.o.payload, self.o.payload
        ready, given, drops = Signal(), Signal(), Signal()
        m.d.comb += [
            ready.eq(decided.i.ready & self.o.ready), given.eq(self.o.valid & self.o.ready),
            self.o.valid.eq(waiting.o.valid & queue.o.valid & decided.i.ready),
            waiting.o.ready.eq(queue.o.valid & ready), queue.o.ready.eq(waiting.o.valid & ready),
            decided.i.valid.eq(given & slot.bag), decided.i.payload.eq(verdict.repeat),
            *(o[name].eq(slot[name]) for name in slot.shape().members),
            o.repeat.eq(verdict.repeat), o.kept.eq(verdict.kept & ~verdict.repeat),
            o.position.eq(waiting.o.payload.position),
            drops.eq(decided.o.payload),
            self.bags.payload.eq(held.o.payload),
            self.bags.valid.eq(held.o.valid & decided.o.valid & ~drops),
            held.o.ready.eq(decided.o.valid & (drops | self.bags.ready)),
            decided.o.ready.eq(held.o.valid & held.o.ready & held.o.payload.tail),
        ]
        with m.If(verdict.repeat):
            m.d.comb += [o.kind.eq(RecordKind.EMPTY), o.bag.eq(0), o.mine.eq(0)]
        bag, again = given & slot.bag, given & verdict.repeat
        count(m, self.counters, bags=bag, repeats=again,
              repeated_keys=Mux(again, slot.key.row[:QueryBag["keys"].width], 0),
              beyond=bag & ~verdict.kept & self.enable)
        return decided.idle
