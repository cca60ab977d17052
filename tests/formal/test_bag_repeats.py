"""Proofs of the repeats of bags: a bag repeats exactly if it equals the remembered bag at its
position of the previous sample of its step, and every other bag leaves whole and in order."""

from types import SimpleNamespace

import pytest
from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from rtl.formats import RecordKind, repeat_fields
from rtl.memory import Ram
from rtl.query.repeats import BagRepeats
from rtl.stream import CreditQueue, StreamFIFO
from tests.formal.bench import Bench
from tests.formal.induction import by_induction
from tests.formal.plain import TimedFIFO
from tests.formal.prove import prove
from tests.formal.shown import LOCALS, ShownRam
from tests.formal.wires import ShortQueue, Wires
from tests.mutants import variant

POSITIONS, RING, LANES = 2, 4, 2
"""Positions that are remembered, words of the ring, words of a beat."""
LONGEST = 2
"""Segments of the longest bag whose segments are followed."""
MOST = 5
"""Words of the longest bag, without its head."""
_WORD = data.StructLayout({"wide": 1, "weighted": 1, "keys": 2})
_HEAD = data.StructLayout({"keys": 2, "table": 1, "wide": 1, "weighted": 1})
_SEGMENT = data.StructLayout({
    "words": LANES * _WORD.size, "first": range(LANES), "size": range(LANES + 1),
    "head": 1, "tail": 1})
_KEY = data.StructLayout({"row": 2, "table": 1})
_AT = range(POSITIONS + 1)
_EVENT = data.StructLayout({
    "valid": 1, "bag": 1, "begins": 1, "ends": 1, "opens": 1, "last": 1, "follows": 1,
    "before": _AT, "counts": 1, "at": _AT, "enable": 1, "head": _HEAD, "size": 3,
    "segment": _SEGMENT})
_BAG = data.StructLayout({"kept": 1, "head": _HEAD, "words": RING})


def _slots(_bags: bool, positions: int = 0) -> data.StructLayout:
    return data.StructLayout({
        "key": _KEY, "kind": 2, "sample": 2, "step": 1, "last": 1, "bag": 1, "mine": 1,
        **repeat_fields(positions)})


def _ring_segment(words: int) -> data.StructLayout:
    return data.StructLayout({
        "segment": _SEGMENT, "wide": 1, "weighted": 1, "odd": 1, "old": range(words),
        "new": range(words), "compares": 1, "writes": 1})


class PlainRing(Component):
    """A word ring without delay, for words of one bit (``test_word_ring``).

    Set ``ANY`` to a free signal: the verdict on no bag. Members: ``cells``; ``after``, the cells after this segment; ``recent``: the cell was written by
    the segment before; ``equal``: the bag was equal until the segment before; ``soon``: a word is
    compared that the segment before stored; ``now``: the bag is equal until this segment.
    """

    ANY: Value

    def __init__(self, words: int):
        super().__init__({
            "i": In(data.StructLayout({"valid": 1, "payload": _ring_segment(words)})),
            "o": Out(data.StructLayout({"valid": 1, "equal": 1}))})
        self.cells, self.recent, self.equal = Signal(words), Signal(words), Signal()
        self.after, self.soon, self.now = Signal(words), Signal(), Signal()

    def elaborate(self, platform) -> Module:
        m, item, segment = Module(), self.i.payload, self.i.payload.segment
        written, equal, soon = Signal.like(self.cells), [], []
        m.d.comb += self.after.eq(self.cells)
        for n in range(LANES):
            word = bit_of(segment, segment.first + segment.head + n)
            old, new = ((place + n)[:len(item.old)] for place in (item.old, item.new))
            here = segment.size - segment.head > n
            equal.append(~here | (word == self.cells.bit_select(old, 1)))
            soon.append(here & self.recent.bit_select(old, 1))
            with m.If(self.i.valid & item.writes & here):
                m.d.comb += [self.after.bit_select(new, 1).eq(word),
                             written.bit_select(new, 1).eq(1)]
        compares = Mux(segment.head, item.compares, self.equal)
        m.d.comb += [
            self.soon.eq(self.i.valid & compares & Cat(soon).any()),
            self.now.eq(compares & Cat(equal).all()),
            self.o.equal.eq(Mux(self.o.valid, self.now, self.ANY)),
            self.o.valid.eq(self.i.valid & segment.tail)]
        m.d.sync += [self.cells.eq(self.after), self.recent.eq(written)]
        with m.If(self.i.valid):
            m.d.sync += self.equal.eq(self.now)
        return m


class Sink(StreamFIFO):
    """A FIFO that takes every item and outputs none."""

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.comb += self.i.ready.eq(1)
        return m


def bit_of(segment: data.View, number: Value) -> Value:
    """Return the bit of word ``number`` of the beat of ``segment``, modulo the size of a beat."""
    return segment.words.word_select(number[:1], _WORD.size)[0]


def size_of(head: data.View) -> Value:
    """Return the number of words behind ``head``."""
    pairs = (head.keys + 1) >> 1
    return Mux(head.wide, head.keys, pairs) + Mux(head.weighted, pairs, 0)


class Samples:
    """Offer samples of any slots, with the segments of their bags, to a block.

    Members
    -------
    event: the slot, or the segment of a bag, that is taken in this cycle. opens: it begins a
        sample, which ``follows`` the sample before it; ``before``: bags of that sample, and ``at``:
        the position, both at most ``POSITIONS``. size: words of the bag.
    inside, opens, at, before, following, step: the same of the next slot.
    """

    def __init__(self, bench: Bench, dut: BagRepeats):
        m, slots, segment = bench.m, dut.slots, dut.segments.payload
        self.slots = slots
        self.event = event = Signal(_EVENT)
        self.inside, self.opens = Signal(name="s_inside"), Signal(init=1, name="s_opens")
        self.at, self.before = Signal(_AT, name="s_at"), Signal(_AT, name="s_before")
        self.following, self.step = Signal(2, name="s_following"), Signal(name="s_step")
        self.kept, self.sample = Signal(2, name="s_kept"), Signal(3, name="s_sample")
        kept, offered = self.sample, Signal(_slots(True))
        m.d.comb += [
            offered.eq(bench.free(_slots(True).size, "slot")), Cat(offered.sample, offered.step).eq(
                Mux(self.opens, bench.free(3, "sample"), kept))]
        taken = bench.source(slots, Cat(offered))
        slot = slots.payload

        # The next segment, and the words before it.
        begins, done, stop = ~self.inside, Signal(3, name="s_done"), Signal(3)
        m.d.comb += [
            event.head.keys.eq(slot.key.row), event.head.table.eq(slot.key.table),
            Cat(event.head.wide, event.head.weighted).eq(
                Mux(begins, bench.free(2, "head"), self.kept)),
            dut.segments.valid.eq(bench.free(name="segment")), segment.head.eq(begins),
            segment.first.eq(bench.free(1, "first")), segment.size.eq(bench.free(2, "size")),
            segment.words.eq(bench.free(LANES * _WORD.size, "words")),
            stop.eq(done + segment.size - begins), segment.tail.eq(stop == event.size)]
        with m.If(begins):
            m.d.comb += segment.words.word_select(segment.first, _WORD.size)[:2].eq(
                Cat(event.head.wide, event.head.weighted))
        bench.assume(
            slot.kind != RecordKind.SAMPLE, ~slot.last | (slot.kind != RecordKind.KEY),
            ~slot.bag | ((slot.kind == RecordKind.KEY_END) & (slot.key.row != 0)),
            segment.size != 0,
            segment.size <= LANES - segment.first, stop <= event.size)
        took = dut.segments.valid & dut.segments.ready
        self.took, self.taken = took, taken
        bench.always("segments", (took == (event.valid & event.bag))
                     & (taken == (event.valid & event.ends)))
        m.d.comb += [
            event.valid.eq(taken | took), event.bag.eq(slot.bag), event.begins.eq(begins),
            event.ends.eq(~slot.bag | segment.tail), event.opens.eq(self.opens & begins),
            event.last.eq(slot.last), event.before.eq(self.before), event.at.eq(self.at),
            event.follows.eq((slot.sample == self.following) & (slot.step == self.step)),
            event.counts.eq(slot.kind != RecordKind.KEY), event.enable.eq(dut.enable),
            event.size.eq(size_of(event.head)), event.segment.eq(segment)]
        with m.If(took):
            m.d.sync += [self.inside.eq(~segment.tail), done.eq(Mux(segment.tail, 0, stop)),
                         self.kept.eq(Cat(event.head.wide, event.head.weighted))]
        self.done = done
        with m.If(taken):
            m.d.sync += [kept.eq(Cat(slot.sample, slot.step)), self.opens.eq(slot.last),
                         self.at.eq(Mux(slot.last, 0, after(event)))]
            with m.If(slot.last):
                m.d.sync += [self.following.eq(slot.sample + 1), self.step.eq(slot.step),
                             self.before.eq(after(event))]


def is_short(event: data.View) -> Value:
    """Return whether a sample of so few bags ends that the next one has to wait."""
    return event.valid & event.ends & event.last & (event.at < 2)


def after(event: data.View) -> Value:
    """Return the number of bags of the sample, at most ``POSITIONS``, with that of ``event``."""
    return Mux(event.counts & (event.at != POSITIONS), event.at + 1, event.at)[:2]


_SHOWN = [("        return item\n", f"        {LOCALS.format('entering')}return item\n"),
          ("m.d.comb += ring.i.eq(given)",
           f"{LOCALS.format('inner')}m.d.comb += ring.i.eq(given)")]


class Remembered:
    """Statements about the verdicts on bags.

    The events of the two cycles before are those of the block's registers; the bags of the previous
    sample and of this one follow from the later event. Each kept bag has its words in the ring,
    behind those of the kept bag before it.
    """

    def __init__(self, *edits: tuple[str, str]):
        self.bench = bench = Bench()
        m = bench.m
        free, PlainRing.ANY = bench.free(name="free"), bench.free(name="any")

        class AnyQueue(CreditQueue):
            def elaborate(self, platform) -> Module:
                m = Module()
                m.d.comb += self.free.eq(free)
                return m

        self.dut = dut = variant(
            BagRepeats, *edits, *_SHOWN, NicConfig=SimpleNamespace, SkidBuffer=Wires,
            StreamFIFO=Sink, CreditQueue=AnyQueue, WordRing=PlainRing, Ram=ShownRam,
            RingSegment=_ring_segment, Segment=_SEGMENT, slot_layout=_slots, QueryBag=_WORD,
            RECORD_BITS=_WORD.size, RECORDS_PER_BEAT=LANES, SAMPLE_BITS=2, STEP_BITS=1,
            _Head=_HEAD, _BEHIND=1)(SimpleNamespace(
                check_repeats=lambda: None, repeat_words=RING, repeat_positions=POSITIONS,
                bag_words=MOST + 1))
        dut._MustUse__silence = True  # elaborated here, because statements refer to its parts
        m.submodules.dut = dut.elaborate(None)
        self.parts = m.submodules.dut.submodules
        m.d.comb += dut.enable.eq(bench.free(name="enable"))
        self.samples = samples = Samples(bench, dut)
        self.event = [samples.event, Signal(_EVENT, name="event1"), Signal(_EVENT, name="event2")]
        m.d.sync += [later.eq(now) for now, later in zip(self.event, self.event[1:])]
        self._bags()
        self._verdict()

    def _bags(self) -> None:
        """Track the bags of the previous sample and of this one, up to the later event."""
        m, event = self.bench.m, self.event[2]
        self.before, self.now, was = (
            [Signal(_BAG, name=f"{name}{q}") for q in range(POSITIONS)]
            for name in ("before", "now", "was"))
        # Bags of the previous sample; positions so far; position of the last bag.
        self.known, self.count, self.last, self.open = (
            Signal(_AT, name="known"), Signal(_AT, name="count"), Signal(_AT, name="last"),
            Signal(name="open"))
        self.done, self.follows = Signal(3, name="done"), Signal(name="follows")
        self.head = Signal(_HEAD, name="head")
        self.final, self.matched, self.short = Signal(init=1, name="final"), Signal(name="matched"), Signal(name="short")
        self.segment = Signal(_SEGMENT)
        is_now = [Signal(_BAG, name=f"is_now{q}") for q in range(POSITIONS)]
        m.d.comb += [*(each.eq(bag) for each, bag in zip(was, self.before)),
                     *(each.eq(bag) for each, bag in zip(is_now, self.now))]
        with m.If(event.opens):
            m.d.comb += [each.eq(0) for each in is_now]
            m.d.comb += [each.eq(Mux(event.follows, Cat(bag), 0))
                         for each, bag in zip(was, self.now)]
        self.total = sum((Mux(bag.kept, size_of(bag.head), 0) for bag in is_now), 0) + sum((
            Mux(bag.kept & (event.at <= q), size_of(bag.head), 0) for q, bag in enumerate(was)), 0)
        fits, kept = Signal(), Signal()
        old, bag, words = Signal(_BAG), Signal(_BAG), Signal(RING)
        begin = event.segment.first + event.segment.head
        size = event.segment.size - event.segment.head
        place = Mux(event.begins, 0, self.done)
        self.differs, differs = Signal(), []
        m.d.comb += [
            fits.eq(event.bag & event.enable & (event.at != POSITIONS)
                    & (self.total + event.size <= RING)),
            old.eq(Array([*was, Signal(_BAG)])[event.at]), kept.eq(Mux(
                event.begins, fits, Array([*(each.kept for each in self.now), 0])[event.at])),
            words.eq(Mux(event.begins, 0, Array([*(each.words for each in self.now), 0])[event.at])),
            bag.eq(Cat(kept, event.head, words))]
        for n in range(LANES):
            word = bit_of(event.segment, begin + n)
            here = (size > n) & (place + n < RING)
            with m.If(here):
                m.d.comb += bag.words.bit_select((place + n)[:2], 1).eq(word)
            differs.append((size > n) & (word != old.words.bit_select((place + n)[:2], 1)))
        # The verdict so far: no part of the bag differs from the bag before.
        self.same, same, matched = Signal(), Signal(), Signal()
        m.d.comb += [matched.eq(Mux(event.begins, event.bag & old.kept & (
            old.head == event.head), self.matched)), same.eq(
                Mux(event.begins, matched, self.same) & ~Cat(differs).any())]
        self.kept, self.ended, self.bag = Signal(), Signal(), Signal()
        m.d.sync += [self.ended.eq(event.valid & event.ends), self.bag.eq(
            event.valid & event.bag), self.short.eq(is_short(event)),
            self.segment.eq(event.segment)]
        self.was, self.is_now, self.old = was, is_now, old
        with m.If(event.valid):
            m.d.sync += [
                *(each.eq(bag) for each, bag in zip(self.before, was)),
                *(each.eq(bag) for each, bag in zip(self.now, is_now)), 
                self.known.eq(Mux(event.follows, event.before, 0)), self.count.eq(after(event)), self.last.eq(event.at), self.open.eq(~event.ends),
                self.done.eq(place + size), self.follows.eq(event.follows), self.same.eq(same),
                self.kept.eq(kept), self.head.eq(event.head), self.matched.eq(matched),
                self.final.eq(event.ends & event.last)]
            with m.If(event.counts):
                for q in range(POSITIONS):
                    with m.If(event.at == q):
                        m.d.sync += self.now[q].eq(Mux(event.bag, Cat(bag), 0))

    def _verdict(self) -> None:
        """State the verdict on each slot, and that words are not compared too soon."""
        bench, given = self.bench, self.parts.queue.i
        bench.always("answered", given.valid == self.ended)
        bench.always("kept", ~given.valid | (given.payload.kept == self.kept))
        bench.always("repeats", ~given.valid | (given.payload.repeat == (self.bag & self.same)))
        bench.always("not_too_soon", ~self.parts.ring.soon)

    def inside(self) -> None:
        """State the registers of the block, which makes all statements inductive."""
        self._entering()
        self._events()
        self._registers()
        self._room()
        self._words()

    def _entering(self) -> None:
        """State the registers of the next slot."""
        bench, samples, inner, event = (
            self.bench, self.samples, self.dut.entering, self.event[0])
        slot = inner["slot"]
        bench.always("entering", (inner["inside"] == samples.inside) & (
            inner["first"] == samples.opens) & (inner["position"] == samples.at) & (
                inner["before"] == samples.before))
        bench.always("following", (inner["sample"] == samples.following) & (
            inner["step"] == samples.step))
        bench.always("held", ~samples.inside | (samples.slots.valid & slot.bag))
        bench.always("its_sample", samples.opens | (
            Cat(slot.sample, slot.step) == samples.sample))
        near, (_, one, two) = inner["near"], self.event
        bench.always("near", ((near == 2) == is_short(one)) & ((near == 1) == is_short(two))
                     & (near != 3) & ~(is_short(two) & one.valid) & ~(self.short & two.valid))
        self.inner_head = ~samples.inside | (Cat(inner["item"].head) == Cat(event.head))

    def _events(self) -> None:
        """State that each event continues the events before it."""
        bench, samples = self.bench, self.samples
        names = ("count", "last", "open", "follows", "known", "done", "head", "final")
        state = SimpleNamespace(**{name: getattr(self, name) for name in names})
        for k in (2, 1):
            event = self.event[k]
            known = Mux(event.follows, event.before, 0)
            place = Mux(event.begins, 0, state.done)
            stop = place + event.segment.size - event.segment.head
            good = Mux(event.begins, ~state.open & (event.opens == state.final) & Mux(
                event.opens, (event.at == 0) & (event.before == state.count),
                (event.at == state.count) & (event.follows == state.follows)
                & (known == state.known)),
                state.open & (event.at == state.last) & (after(event) == state.count) & event.bag
                & (event.follows == state.follows) & (known == state.known)
                & (Cat(event.head) == Cat(state.head)) & ~event.opens)
            segment = event.segment
            bag = event.counts & (event.head.keys != 0) & (segment.head == event.begins) & (
                segment.size != 0) & (segment.size <= LANES - segment.first) & (
                    stop <= event.size) & (segment.tail == (stop == event.size))
            bench.always(f"event_{k}", ~event.valid | (
                good & (~event.bag | bag) & (event.size == size_of(event.head))
                & (event.ends == (~event.bag | segment.tail)) & (event.bag | event.begins)
                & (~event.last | event.counts) & (event.at <= POSITIONS)))
            after_it = {
                "count": after(event), "last": event.at, "open": ~event.ends,
                "follows": event.follows, "known": known, "done": stop, "head": event.head,
                "final": event.ends & event.last}
            state = SimpleNamespace(**{
                name: Mux(event.valid, Cat(after_it[name]), Cat(getattr(state, name)))
                for name in names})
        event = self.event[0]
        known = Mux(event.follows, samples.before, 0)
        bench.always("next", (samples.inside == state.open) & Mux(
            samples.inside, (samples.at == state.last) & (event.follows == state.follows)
            & (known == state.known) & (Cat(event.head) == Cat(state.head))
            & (samples.done == state.done) & (after(event) == state.count),
            (samples.done == 0) & (samples.opens == state.final) & Mux(
                samples.opens, (samples.at == 0) & (samples.before == state.count),
                (samples.at == state.count) & (event.follows == state.follows)
                & (known == state.known))))
        bench.always("counts", (state.count <= POSITIONS) & (self.count <= POSITIONS) & (
            self.known <= POSITIONS) & (samples.before <= POSITIONS))

    def _registers(self) -> None:
        """State the registers of the two stages behind the entry."""
        bench, inner = self.bench, self.dut.inner
        item, here, record = inner["item"], inner["here"], self.parts.records
        for k, stage, event in ((1, item, self.event[1]), (2, here, self.event[2])):
            small = event.at != POSITIONS
            bench.always(f"stage_{k}", (stage.valid == event.valid) & (~event.valid | (
                (stage.bag == event.bag) & (stage.begins == event.begins)
                & (stage.ends == event.ends) & (stage.segment == event.segment)
                & (stage.writes == (event.counts & small)) & (~event.begins | (
                    (stage.first == event.opens) & (stage.follows == event.follows)
                    & (stage.known == (event.counts & (event.at < event.before)))
                    & (stage.stores == (event.bag & event.enable & small))
                    & (~small | (stage.position == event.at))
                    & (stage.words == Mux(event.bag, event.size, 0))))
                & (~event.bag | (Cat(stage.head) == Cat(event.head))))))
        bench.always("head", self.inner_head)
        one, two = self.event[1:]
        bench.always("read", ~(one.valid & one.begins) | (one.at == POSITIONS) | (
            record.word == Array(record.cells)[one.at[:1]]))
        gone = Mux(two.counts & self.old.kept, size_of(self.old.head), 0)
        size = Mux(two.bag, two.size, 0)
        before = self.begin_of(self.was, self.is_now, two.at)
        bench.always("here", ~(two.valid & two.begins) | (
            (here.change[0] == -gone) & (here.change[1] == size - gone)
            & (here.margin == RING - size) & (here.equal_head == (
                two.bag & self.old.kept & (self.old.head == two.head)))
            & (~(two.counts & self.old.kept) | (here.start == before[:2]))))

    @staticmethod
    def sizes(bags: list[Signal], first: Value) -> Value:
        """Return the words of the kept ones of ``bags`` from position ``first`` on."""
        return sum((Mux(bag.kept & (first <= q), size_of(bag.head), 0)
                    for q, bag in enumerate(bags)), 0)

    def begin_of(self, before: list[Signal], now: list[Signal], at: Value) -> Value:
        """Return the place of the first word of the bag of the sample before at ``at``."""
        return (self.dut.inner["tail"] - self.sizes(now, Value.cast(0))
                - self.sizes(before, at))[:2]

    def _room(self) -> None:
        """State the numbers of words in use, and the records of kept bags."""
        bench, inner, cells = self.bench, self.dut.inner, self.parts.records.cells
        none, layout = Value.cast(0), self.dut._record
        own, rest = self.sizes(self.now, none), self.sizes(self.before, self.count)
        bench.always("used", (inner["used"] == own + rest) & (inner["own"] == own))
        self.live = Mux(self.open, self.last, self.count)
        bench.always("room", own + self.sizes(self.before, self.live) <= RING)
        for name, bags, most in (("now", self.now, self.count), ("before", self.before,
                                                                 self.known)):
            bench.always(f"{name}_kept", Cat(~bag.kept | (
                (most > q) & (bag.head.keys != 0) & (size_of(bag.head) <= RING))
                for q, bag in enumerate(bags)).all())
        for q, cell in enumerate(cells):
            record, found = data.View(layout, cell), Signal(_BAG, name=f"recorded{q}")
            start = Signal(2, name=f"start{q}")
            now, at = self.count > q, Value.cast(q)
            self.bench.m.d.comb += [
                found.eq(Mux(now, Cat(self.now[q]), Cat(self.before[q]))),
                start.eq(Mux(now, inner["tail"] - self.sizes(self.now, at),
                             self.begin_of(self.before, self.now, at)))]
            bench.always(f"record_{q}", (~now & (self.known <= q)) | (
                (record.valid == found.kept) & (~found.kept | (
                    (record.head == found.head) & (record.words == size_of(found.head))
                    & (record.start == start)))))

    def _words(self) -> None:
        """State the words of kept bags, and the bag that is compared."""
        bench, inner, ring, given = self.bench, self.dut.inner, self.parts.ring, self.parts.ring.i
        m = bench.m
        tail, item = inner["tail"], given.payload
        size = item.segment.size - item.segment.head
        last, begins = self.last[:1], self.done - size
        old, start, new = Signal(_BAG), Signal(2), Signal(2)
        m.d.comb += [
            old.eq(Mux(self.last == POSITIONS, 0, Array([Cat(bag) for bag in self.before])[last])),
            start.eq(self.begin_of(self.before, self.now, self.last)),
            new.eq(tail - self.sizes(self.now, self.last))]
        bench.always("same", ~((self.open | self.bag) & self.same) | (
            self.matched & old.kept & (old.head == self.head)))
        bench.always("last", (~(self.open | self.bag) | (
            self.count == Mux(self.last == POSITIONS, POSITIONS, self.last + 1)))
            & (self.short == (self.ended & self.final & (self.last < 2)))
            & (~self.bag | (self.ended == ~self.open)))
        mine = Signal(_BAG)
        m.d.comb += mine.eq(Mux(
            self.last == POSITIONS, 0, Array([Cat(bag) for bag in self.now])[last]))
        bench.always("its_own", ~(self.open | self.bag) | (
            (self.done <= size_of(self.head)) & (mine.kept == self.kept) & (~self.kept | (mine.head == self.head))))
        bench.always("open", ~self.open | (
            (inner["writes"] == self.kept)
            & (~old.kept | (inner["old_next"] == (start + self.done)[:2]))
            & (~self.kept | (inner["new_next"] == (new + self.done)[:2]))))
        bench.always("given", (given.valid == self.bag) & (~given.valid | (
            (item.segment == self.segment) & (item.writes == self.kept)
            & (size <= self.done) & (~item.segment.head | (size == self.done))
            & (~item.segment.head | (item.compares == self.matched))
            & (~old.kept | (item.old == (start + begins)[:2]))
            & (~self.kept | (item.new == (new + begins)[:2])))))
        bench.always("so_far", Mux(given.valid, ring.now == self.same,
                                   ~self.open | (ring.equal == self.same)))
        bench.always("compared", ~given.valid | self._stored(ring.cells, old, start))
        for q in range(POSITIONS):
            at = Value.cast(q)
            bench.always(f"before_{q}", (self.live > q) | self._stored(
                ring.after, self.before[q], self.begin_of(self.before, self.now, at)))
            bench.always(f"now_{q}", self._stored(
                ring.after, self.now[q], (tail - self.sizes(self.now, at))[:2],
                Mux(self.open & (self.last == q), self.done, RING)))

    @staticmethod
    def _stored(cells: Value, bag: data.View, start: Value, most: Value = Value.cast(RING)):
        """Return whether the first ``most`` words of a kept bag are in ``cells``."""
        return Cat(~bag.kept | (size_of(bag.head) <= n) | (most <= n) | (
            cells.bit_select((start + n)[:2], 1) == bag.words[n]) for n in range(RING)).all()


def test_verdicts():
    remembered = Remembered()
    remembered.inside()
    verdict = by_induction(remembered.bench)
    assert verdict.holds, verdict


class AnyRam(Ram):
    """A RAM that reads any words. Set ``WORD`` to a free signal."""

    WORD: Value

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.comb += self.read_data.eq(self.WORD)
        return m


class AnyVerdict(PlainRing):
    """A word ring without delay that finds the verdict on a bag in the first bit of its tail."""

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.comb += [
            self.o.equal.eq(self.i.payload.segment.words[0]),
            self.o.valid.eq(self.i.valid & self.i.payload.segment.tail)]
        return m


def leaving(*edits: tuple[str, str]) -> Bench:
    """Return a bench of the slots and segments that leave; each bag gets any verdict."""
    bench = Bench()
    m = bench.m
    dut = variant(
        BagRepeats, *edits, NicConfig=SimpleNamespace, SkidBuffer=Wires, StreamFIFO=TimedFIFO,
        CreditQueue=ShortQueue, WordRing=AnyVerdict, Ram=AnyRam, RingSegment=_ring_segment,
        Segment=_SEGMENT, slot_layout=_slots, QueryBag=_WORD, RECORD_BITS=_WORD.size,
        RECORDS_PER_BEAT=LANES, SAMPLE_BITS=2, STEP_BITS=1, _Head=_HEAD, _BEHIND=1, QUEUE=2)(
            SimpleNamespace(check_repeats=lambda: None, repeat_words=RING,
                            repeat_positions=POSITIONS, bag_words=1))
    AnyRam.WORD = bench.free(dut._record.size, "word")
    dut._MustUse__silence = True  # elaborated here, because statements refer to its parts
    m.submodules.dut = dut.elaborate(None)
    queue = m.submodules.dut.submodules.queue

    offered, again = Signal(_slots(True)), bench.free(name="again")
    m.d.comb += [offered.eq(Cat(again, bench.free(_slots(True).size - 1, "slot"))),
                 offered.sample.eq(0), offered.key.table.eq(0)]
    taken = bench.source(dut.slots, Cat(offered))
    slot, segment, inside, length = dut.slots.payload, dut.segments.payload, Signal(), Signal(2)
    m.d.comb += [
        dut.segments.valid.eq(bench.free(name="segment")), segment.head.eq(~inside),
        segment.size.eq(1), segment.tail.eq(bench.free(name="tail") | (length == LONGEST - 1)),
        segment.words.eq(Cat(slot.key.row[0], 0, bench.free(name="data")))]
    took = dut.segments.valid & dut.segments.ready
    at, repeats, out = Signal(_AT), slot.bag & slot.key.row[0], dut.o.payload
    bench.assume(~slot.bag | (slot.kind == RecordKind.KEY_END))
    with m.If(took):
        m.d.sync += [inside.eq(~segment.tail), length.eq(Mux(segment.tail, 0, length + 1))]
    with m.If(taken):
        m.d.sync += at.eq(Mux(slot.last, 0, Mux(
            (slot.kind == RecordKind.KEY) | (at == POSITIONS), at, at + 1)))

    left, sent = bench.sink(dut.o, "o"), bench.sink(dut.bags, "bags")
    parts = m.submodules.dut.submodules
    waiting, held = parts.waiting, parts.held
    # What enters and leaves the queues, which keep the order.
    stored, shown = waiting.i.payload, waiting.o.payload.slot
    bench.always("enters", ((waiting.i.valid & waiting.i.ready) == taken) & (~taken | (
        (Cat(stored.slot) == Cat(slot)) & (stored.position == at[:1]))))
    bench.always("is_held", ((held.i.valid & held.i.ready) == took) & (~took | (
        Cat(held.i.payload) == Cat(segment))))
    bench.always("leaves", (waiting.o.valid & waiting.o.ready) == left)
    again = shown.bag & shown.key.row[0]
    bench.always("itself", ~left | (Cat(*(out[name] for name in shown.shape().members)) == Cat(
        shown.key, Mux(again, RecordKind.EMPTY, shown.kind), shown.sample, shown.step, shown.last,
        shown.bag & ~again, shown.mine & ~again)))
    bench.always("repeat", ~left | (out.repeat == again))
    gone, drops = held.o.valid & held.o.ready, held.o.payload.words[0]
    bench.always("its_segments", (sent == (gone & ~drops)) & (
        ~sent | (Cat(dut.bags.payload) == Cat(held.o.payload))))
    bench.always("kept", ~left | (out.kept == (queue.o.payload.kept & ~out.repeat)))
    bench.always("together", taken == Mux(slot.bag, took & segment.tail, taken))
    bench.always("its_own", ~took | (dut.slots.valid & slot.bag))
    bench.always("idle", ~dut.idle | ~(waiting.o.valid | held.o.valid | parts.decided.o.valid))
    return bench


def test_leaving():
    verdict = prove(leaving())
    assert verdict.holds, verdict
