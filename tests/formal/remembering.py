"""Statements about the verdicts on bags that may repeat, and the invariant that proves them."""

from types import SimpleNamespace

from amaranth.hdl import Array, Cat, Mux, Signal, Value
from amaranth.lib import data

from tests.formal.remembered_bags import RememberedBags
from tests.formal.repeating import BAG, LANES, POSITIONS, RING, after, is_short, size_of

__all__ = ["Remembered"]


class Remembered(RememberedBags):
    """Statements about the verdicts on bags."""

    def __init__(self, *edits: tuple[str, str]):
        super().__init__(*edits)
        self._verdict()

    def _verdict(self) -> None:
        """State the verdict on each slot, and that words are not compared too soon."""
        bench, given = self.bench, self.parts.queue.i
        bench.always("answered", given.valid == self.ended)
        bench.always("kept", ~given.valid | (given.payload.kept == self.kept))
        bench.always("repeats", ~given.valid | (given.payload.repeat == (self.bag & self.same)))
        bench.always("not_too_soon", ~self.parts.ring.soon)
        item, head = self.parts.ring.i.payload, self.head
        bench.always("head_told", ~self.bag | (
            (item.segment == self.segment) & (item.wide == head.wide)
            & (item.weighted == head.weighted) & (item.odd == head.keys[0])))

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
        return Value.cast(sum(Mux(bag.kept & (first <= q), size_of(bag.head), 0)
                              for q, bag in enumerate(bags)))

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
            record, found = data.View(layout, cell), Signal(BAG, name=f"recorded{q}")
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
        begins = self.done - size
        old, start, new = Signal(BAG), Signal(2), Signal(2)
        m.d.comb += [
            old.eq(self.at(self.before, self.last)),
            start.eq(self.begin_of(self.before, self.now, self.last)),
            new.eq(tail - self.sizes(self.now, self.last))]
        bench.always("same", ~((self.open | self.bag) & self.same) | (
            self.matched & old.kept & (old.head == self.head)))
        bench.always("last", (~(self.open | self.bag) | (
            self.count == Mux(self.last == POSITIONS, POSITIONS, self.last + 1)))
            & (self.short == (self.ended & self.final & (self.last < 2)))
            & (~self.bag | (self.ended == ~self.open)))
        mine = data.View(BAG, self.at(self.now, self.last))
        bench.always("its_own", ~(self.open | self.bag) | (
            (self.done <= size_of(self.head)) & (mine.kept == self.kept)
            & (~self.kept | (mine.head == self.head))))
        bench.always("open", ~self.open | (
            (inner["writes"] == self.kept)
            & (~old.kept | (inner["old_next"] == (start + self.done)[:2]))
            & (~self.kept | (inner["new_next"] == (new + self.done)[:2]))))
        bench.always("given", (given.valid == self.bag) & (~given.valid | (
            (item.writes == self.kept) & (size <= self.done)
            & (~item.segment.head | ((size == self.done) & (item.compares == self.matched)))
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
    def _stored(cells: Value, bag: data.View, start: Value, most: Value | int = RING):
        """Return whether the first ``most`` words of a kept bag are in ``cells``."""
        return Cat(~bag.kept | (size_of(bag.head) <= n) | (n >= most) | (
            cells.bit_select((start + n)[:2], 1) == bag.words[n]) for n in range(RING)).all()
