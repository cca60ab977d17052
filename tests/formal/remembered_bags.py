"""The bags of the previous sample and of this one, as a block that remembers them should have them.
"""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from rtl.stream import CreditQueue
from tests.formal.bench import Bench
from tests.formal.repeating import (
    AT,
    BAG,
    EVENT,
    HEAD,
    LANES,
    POSITIONS,
    RING,
    SEGMENT,
    PlainRing,
    Samples,
    Sink,
    after,
    bit_of,
    block,
    is_short,
    size_of,
)
from tests.formal.shown import LOCALS, ShownRam

__all__ = ["RememberedBags"]

_SHOWN = [("        return item\n", f"        {LOCALS.format('entering')}return item\n"),
          ("m.d.comb += ring.i.eq(given)",
           f"{LOCALS.format('inner')}m.d.comb += ring.i.eq(given)")]


class RememberedBags:
    """The block that remembers bags, and the bags that it should remember.

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

        self.dut = dut = block(*edits, *_SHOWN, StreamFIFO=Sink, CreditQueue=AnyQueue,
                               WordRing=PlainRing, Ram=ShownRam)
        m.submodules.dut = dut.elaborate(None)
        self.parts = m.submodules.dut.submodules
        m.d.comb += dut.enable.eq(bench.free(name="enable"))
        self.samples = samples = Samples(bench, dut)
        self.event = [samples.event, Signal(EVENT, name="event1"), Signal(EVENT, name="event2")]
        m.d.sync += [later.eq(now) for now, later in zip(self.event, self.event[1:])]
        self._bags()

    def _bags(self) -> None:
        """Track the bags of the previous sample and of this one, up to the later event."""
        m, event = self.bench.m, self.event[2]
        self.before, self.now, was = (
            [Signal(BAG, name=f"{name}{q}") for q in range(POSITIONS)]
            for name in ("before", "now", "was"))
        # Bags of the previous sample; positions so far; position of the last bag.
        self.known, self.count, self.last, self.open = (
            Signal(AT, name="known"), Signal(AT, name="count"), Signal(AT, name="last"),
            Signal(name="open"))
        self.done, self.follows = Signal(3, name="done"), Signal(name="follows")
        self.head = Signal(HEAD, name="head")
        self.final, self.matched = Signal(init=1, name="final"), Signal(name="matched")
        self.short, self.segment = Signal(name="short"), Signal(SEGMENT, name="segment")
        is_now = [Signal(BAG, name=f"is_now{q}") for q in range(POSITIONS)]
        m.d.comb += [*(each.eq(bag) for each, bag in zip(was, self.before)),
                     *(each.eq(bag) for each, bag in zip(is_now, self.now))]
        with m.If(event.opens):
            m.d.comb += [each.eq(0) for each in is_now]
            m.d.comb += [each.eq(Mux(event.follows, Cat(bag), 0))
                         for each, bag in zip(was, self.now)]
        self.total = sum((Mux(bag.kept, size_of(bag.head), 0) for bag in is_now), 0) + sum((
            Mux(bag.kept & (event.at <= q), size_of(bag.head), 0) for q, bag in enumerate(was)), 0)
        fits, kept = Signal(), Signal()
        old, bag, words = Signal(BAG), Signal(BAG), Signal(RING)
        begin = event.segment.first + event.segment.head
        size = event.segment.size - event.segment.head
        place = Mux(event.begins, 0, self.done)
        self.differs, differs = Signal(), []
        mine = data.View(BAG, self.at(self.now, event.at))
        m.d.comb += [
            fits.eq(event.bag & event.enable & (event.at != POSITIONS)
                    & (self.total + event.size <= RING)),
            old.eq(self.at(was, event.at)), kept.eq(Mux(event.begins, fits, mine.kept)),
            words.eq(Mux(event.begins, 0, mine.words)), bag.eq(Cat(kept, event.head, words))]
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
                self.known.eq(Mux(event.follows, event.before, 0)), self.count.eq(after(event)),
                self.last.eq(event.at), self.open.eq(~event.ends), self.done.eq(place + size),
                self.follows.eq(event.follows), self.same.eq(same), self.kept.eq(kept),
                self.head.eq(event.head), self.matched.eq(matched),
                self.final.eq(event.ends & event.last)]
            with m.If(event.counts):
                for q in range(POSITIONS):
                    with m.If(event.at == q):
                        m.d.sync += self.now[q].eq(Mux(event.bag, Cat(bag), 0))

    @staticmethod
    def at(bags: list[Signal], position: Value) -> Value:
        """Return the bag at a position, at most ``POSITIONS``; the last has no bag."""
        return Value.cast(Array([*(Cat(bag) for bag in bags), 0])[position])
