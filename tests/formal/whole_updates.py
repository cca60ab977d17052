"""A whole cache in training: the row of key 0 is updated again and again, to any values."""

from amaranth.hdl import C, Cat, Mux, Signal, Value
from amaranth.lib import data

from tests.formal.whole import IDS, Whole

__all__ = ["Updated"]

REST, LOOKED, FOUND = range(3)


class Updated(Whole):
    """The cache of :class:`Whole`, with updates of its row, one after the other, at any time.

    The cache freezes and unfreezes in any cycle, but stays frozen during an update. An update
    begins, once the cache has settled, with a lookup of key 0. After its answer, any new value is
    written to the slot, if the vector was in it, and to memory, in either order; then the update
    ends. A fetch returns the content of memory in any cycle between its request and its fill. While
    the cache has settled, rows of other keys are updated too, to their value 0.

    The marked lookup may be one for an update. It may get any value that its row had since the
    lookup entered: the values before and after each update in progress meanwhile.

    For mutants: ``waits``: lookups for updates wait until the cache has settled; ``stays``: it
    stays frozen until the update ends.
    """

    META_BITS = 2
    EXACT = True

    def __init__(self, *edits: tuple[str, str, str], waits: bool = True, stays: bool = True):
        self._waits, self._stays = waits, stays
        super().__init__(*edits, updated=True)
        bench, dut, m, done = self.bench, self.dut, self.bench.m, self.done
        row, answer = self.parts.tags.rows.rows[0], dut.vectors.payload
        goes, writes, stores, ends, others = (bench.free(name=n) for n in (
            "goes", "writes", "stores", "ends", "others"))
        value = bench.free(name="value")
        # The answer of a lookup that is not held is observed if it is marked; else it may arrive at
        # any time while it waits for one.
        self.found = dut.vectors.valid & answer.meta[1]
        held = self.found & answer.held
        found = self.found | (self.missed & goes & ~(self.due & self.mine))
        take = (self.state == FOUND) & ~self.written & writes
        other = others & dut.settled & row.valid & ~row.pending & (row.key != 0)
        m.d.sync += [self.coming.valid.eq(take | other), self.coming.data.eq(take & self.fresh)]
        with m.Switch(self.state):
            with m.Case(REST):
                with m.If(dut.lookups.valid & dut.lookups.ready & self.update):
                    m.d.sync += self.state.eq(LOOKED)
            with m.Case(LOOKED):
                with m.If(done.valid & done.decision.meta[1]):
                    m.d.sync += self.missed.eq(~done.decision.hit | done.pending)
                with m.If(found):
                    m.d.sync += [self.state.eq(FOUND), self.missed.eq(0), self.held.eq(held),
                                 self.written.eq(~held), self.fresh.eq(value)]
            with m.Case(FOUND):
                m.d.sync += [self.written.eq(self.written | take),
                             self.stored.eq(self.stored | stores)]
                with m.If(self.written & self.stored & ends):
                    m.d.sync += [self.state.eq(REST), self.old.eq(self.fresh),
                                 self.written.eq(0), self.stored.eq(0)]
        for k in range(IDS):
            filled = dut.fills.valid & (dut.fills.payload.id == k)
            with m.If(self.busy[k] & self.of_row[k] & ~filled & bench.free(name="reads")):
                m.d.sync += self.one.bit_select(k, 1).eq(self.memory)
        with m.If(self.enters):
            m.d.sync += self.mine.eq(self.update)
        m.d.sync += self.had.eq(Mux(self.enters, 0, self.had) | self.has)

    def _surround(self) -> None:
        """Also offer lookups for updates, and write the values of the previous update."""
        bench, dut, m = self.bench, self.dut, self.bench.m
        self.state, self.had, self.has = Signal(2), Signal(2), Signal(2)
        # The value before and after the update; which of slot and memory are written.
        self.old, self.fresh, self.written, self.stored, self.held = (
            Signal(name=n) for n in ("old", "fresh", "written", "stored", "held"))
        # The update's lookup waits for a fetch; the marked lookup is one for an update.
        self.missed, self.mine = Signal(), Signal()
        # A skid buffer is before the slot. As its block takes every item, it holds an item for one
        # cycle.
        self.coming = Signal(data.StructLayout({"valid": 1, "data": 1}))
        self.update = bench.free(name="update") & (self.state == REST) & (
            dut.settled if self._waits else dut.frozen)
        self.under_way = (self.state != REST) if self._stays else (self.state == LOOKED)
        self.memory = Mux(self.stored, self.fresh, self.old)
        self.vector = Mux(self.written, self.fresh, self.old)
        self.slot = Mux(self.coming.valid, self.coming.data, self.slot)
        m.d.comb += [
            self.has.eq(Cat(~self.old, self.old)
                        | Mux(self.state == FOUND, Cat(~self.fresh, self.fresh), 0)),
            dut.write.valid.eq(self.coming.valid), dut.write.payload.data.eq(self.coming.data)]
        bench.always("writes_taken", ~dut.write.valid | dut.write.ready)
        super()._surround()

    def right(self, value: Value) -> Value:
        """Return whether the marked lookup may get this vector."""
        has = self.had | self.has
        return Mux(self.kept, Mux(value, has[1], has[0]), ~value)

    def finds(self) -> None:
        """State the properties to prove: the values of lookups, and that updates find their row."""
        bench, answer, row = self.bench, self.dut.vectors.payload, self.parts.tags.rows.rows[0]
        bench.always("vector", ~self.leaves | self.right(answer.data[0]))
        bench.always("finds", ~self.found | (
            (answer.held == (row.valid & (row.key == 0))) & (~answer.held | (answer.slot == 0))
            & (~self.leaves | (answer.data[0] == self.old))))

    def updates(self) -> None:
        """State the location of an update, to make the properties inductive."""
        bench, dut, parts = self.bench, self.dut, self.parts
        row = parts.tags.rows.rows[0]
        here, under_way = row.valid & (row.key == 0), Value.cast(self.under_way)
        bench.always("frozen", ~under_way | dut.settled)
        # The update's lookup has one location, and hits if the row is cached.
        shown, decided, asked, was = self.shown, self.decided, self.asked, self.was
        done, now = self.done.valid, self.done.decision
        queued = [place.held & ~place.item.miss & place.item.meta[1] for place in self.queue]
        bench.always("one_update", sum([
            shown & decided.meta[1], asked & was.meta[1], done & now.meta[1], self.missed, *queued,
        ], C(0)) == (self.state == LOOKED))
        for name, valid, of in (("shown", shown, decided), ("asked", asked, was),
                                ("done", done, now)):
            bench.always(f"update_{name}", ~(valid & of.meta[1]) | (
                of.frozen & (of.key == 0) & (of.hit == here)))
        waits = Cat(*(at.waits for at in self.fetches))
        bench.always("update_hits", ~(
            (asked & was.meta[1]) | (done & now.meta[1])) | ~waits.any())
        bench.always("update_reads", ~bench.any_of(queued) | here)
        bench.always("update_missed", ~self.missed | ~here)
        bench.always("update_found", (self.state != FOUND) | (
            (self.held == here) & (self.held | self.written)))
        bench.always("at_rest", (self.state == FOUND) | ~(self.written | self.stored))
        # The marked lookup is this one, or another.
        its = self.due & self.mine
        bench.always("marked_updates", ~its | (
            (self.state == LOOKED) & self.kept & (self.had == Cat(~self.old, self.old))))
        for name, valid, meta in (
                ("shown", shown, decided.meta), ("asked", asked, was.meta),
                ("done", done, now.meta), *(
                    (f"queued_{k}", place.held & ~place.item.miss, place.item.meta)
                    for k, place in enumerate(self.queue))):
            bench.always(f"marked_{name}", ~valid | (
                (~meta[0] | (meta[1] == self.mine)) & (~meta[1] | (meta[0] == its))))
        waiting = parts.scatter.waiting
        bench.always("marked_waiter", ~bench.any_of(of.marked for of in waiting.lists) | (
            waiting.kept[1] == self.mine))
        # A write on its way to the slot arrives before the row may change.
        bench.always("coming", ~self.coming.valid | (
            row.valid & ~self.pending & (dut.counted == 0) & ~self.entered
            & (self.coming.data == ((row.key == 0) & self.vector))))
