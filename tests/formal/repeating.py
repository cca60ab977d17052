"""A small comparison of bags with the sample before: its surroundings and substitutes in proofs."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Component, In, Out

from rtl.formats import RecordKind, repeat_fields
from rtl.memory import Ram
from rtl.query.repeats import BagRepeats
from rtl.stream import StreamFIFO
from tests.formal.bench import Bench
from tests.formal.wires import Wires
from tests.mutants import variant

__all__ = ["AT", "BAG", "EVENT", "HEAD", "LANES", "MOST", "POSITIONS", "RING", "SEGMENT",
           "AnyRam", "AnyVerdict", "PlainRing", "Samples", "Sink", "after", "bit_of", "block",
           "is_short", "size_of", "slots_of"]

POSITIONS, RING, LANES = 2, 4, 2
"""Positions that are remembered, words of the ring, words of a beat."""
MOST = 5
"""Words of the longest bag, without its head."""
WORD = data.StructLayout({"wide": 1, "weighted": 1, "keys": 2})
HEAD = data.StructLayout({"keys": 2, "table": 1, "wide": 1, "weighted": 1})
SEGMENT = data.StructLayout({
    "words": LANES * WORD.size, "first": range(LANES), "size": range(LANES + 1),
    "head": 1, "tail": 1})
_KEY = data.StructLayout({"row": 2, "table": 1})
AT = range(POSITIONS + 1)
EVENT = data.StructLayout({
    "valid": 1, "bag": 1, "begins": 1, "ends": 1, "opens": 1, "last": 1, "follows": 1,
    "before": AT, "counts": 1, "at": AT, "enable": 1, "head": HEAD, "size": 3,
    "segment": SEGMENT})
BAG = data.StructLayout({"kept": 1, "head": HEAD, "words": RING})


def slots_of(_bags: bool, positions: int = 0) -> data.StructLayout:
    """Layout of a slot; see :func:`rtl.query.slot_layout`."""
    return data.StructLayout({
        "key": _KEY, "kind": 2, "sample": 2, "step": 1, "last": 1, "bag": 1, "mine": 1,
        **repeat_fields(positions)})


def _ring_segment(words: int) -> data.StructLayout:
    return data.StructLayout({
        "segment": SEGMENT, "wide": 1, "weighted": 1, "odd": 1, "old": range(words),
        "new": range(words), "compares": 1, "writes": 1})


class PlainRing(Component):
    """A word ring without delay, for words of one bit (``test_word_ring``).

    Set ``ANY`` to a free signal: the output without a verdict.

    Members
    -------
    cells, after: the words before and after this segment.
    recent: words that the segment before stored. soon: such a word is compared.
    equal, now: the bag was equal before this segment, and with it.
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


class Sink(StreamFIFO):
    """A FIFO that takes every item and outputs none."""

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.comb += self.i.ready.eq(1)
        return m


def bit_of(segment: data.View, number: Value) -> Value:
    """Return the bit of word ``number`` of the beat of ``segment``, modulo the size of a beat."""
    return Value.cast(segment.words.word_select(number[:1], WORD.size)[0])


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
        self.event = event = Signal(EVENT)
        self.inside, self.opens = Signal(name="next_inside"), Signal(init=1, name="next_opens")
        self.at, self.before = Signal(AT, name="next_at"), Signal(AT, name="next_before")
        self.following, self.step = Signal(2, name="next_following"), Signal(name="next_step")
        self.kept, self.sample = Signal(2, name="next_kept"), Signal(3, name="next_sample")
        kept, offered = self.sample, Signal(slots_of(True))
        m.d.comb += [
            offered.eq(bench.free(slots_of(True).size, "slot")),
            Cat(offered.sample, offered.step).eq(Mux(self.opens, bench.free(3, "sample"), kept))]
        taken = bench.source(slots, Cat(offered))
        slot = slots.payload

        # The next segment, and the words before it.
        begins, done, stop = ~self.inside, Signal(3, name="next_done"), Signal(3)
        m.d.comb += [
            event.head.keys.eq(slot.key.row), event.head.table.eq(slot.key.table),
            Cat(event.head.wide, event.head.weighted).eq(
                Mux(begins, bench.free(2, "head"), self.kept)),
            dut.segments.valid.eq(bench.free(name="segment")), segment.head.eq(begins),
            segment.first.eq(bench.free(1, "first")), segment.size.eq(bench.free(2, "size")),
            segment.words.eq(bench.free(LANES * WORD.size, "words")),
            stop.eq(done + segment.size - begins), segment.tail.eq(stop == event.size)]
        with m.If(begins):
            m.d.comb += segment.words.word_select(segment.first, WORD.size)[:2].eq(
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
    return Value.cast(Mux(event.counts & (event.at != POSITIONS), event.at + 1, event.at)[:2])


def block(*edits: tuple[str, str], bag_words: int = MOST + 1, **names: object) -> BagRepeats:
    """Return a small block with ``edits`` and substitutes by ``names``.

    It is to be elaborated at once, because statements refer to its parts.
    """
    dut = variant(
        BagRepeats, *edits, NicConfig=SimpleNamespace, SkidBuffer=Wires, RingSegment=_ring_segment,
        Segment=SEGMENT, slot_layout=slots_of, QueryBag=WORD, RECORD_BITS=WORD.size,
        RECORDS_PER_BEAT=LANES, SAMPLE_BITS=2, STEP_BITS=1, _Head=HEAD, _BEHIND=1, **names)(
            SimpleNamespace(check_repeats=lambda: None, repeat_words=RING,
                            repeat_positions=POSITIONS, bag_words=bag_words))
    dut._MustUse__silence = True
    return dut
