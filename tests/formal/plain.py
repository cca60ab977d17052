"""Substitutes for tables, stores and queues in proofs: over-approximations of their behaviour.

An unbounded proof shows for each that it covers the block it replaces: :class:`PlainTable` and
:func:`plain_ids` in ``test_miss_table``, :func:`plain_store` in ``test_vector_store``, queues in
``test_credit_queue`` and ``test_streams``. The registers that statements refer to are attributes.
"""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Component

from rtl.cache.free_list import FreeList
from rtl.cache.miss_table import MissTable
from rtl.cache.vectors import VectorStore
from rtl.stream import CreditQueue, StreamFIFO
from tests.formal.bench import Bench

__all__ = ["PlainFIFO", "PlainTable", "Rest", "plain_ids", "plain_queue", "plain_store"]


def _ports(block: type, *arguments, **sizes):
    alike = block(*arguments, **sizes)
    alike._MustUse__silence = True  # type: ignore[attr-defined]
    return alike.signature


def _set(m: Module, bits: Signal, number: Value, value: int) -> None:
    m.d.sync += bits.bit_select(number, 1).eq(value)


class PlainTable(Component):
    """A miss table in registers.

    Members
    -------
    fetches: for each id: it is ``out``; ``slot``, ``allocated`` and ``phase`` of its fetch.
    busy, fetch: the answer to the fill's query.
    expected: an opened id is not out, and a closed id was found to be out.
    """

    def __init__(self, *, rows: int, in_flight: int):
        super().__init__(_ports(MissTable, rows=rows, in_flight=in_flight))
        fetch = data.StructLayout({"out": 1, "slot": len(self.slot), "allocated": 1, "phase": 1})
        self.fetches = [Signal(fetch, name=f"fetch{k}") for k in range(in_flight)]
        self.fetch, self.closing = Signal(fetch), Signal.like(self.fill_id)
        self.expected = Signal()

    def elaborate(self, platform) -> Module:
        m = Module()
        found, slot, now = Signal.like(self.fetch), Signal.like(self.slot), Signal.like(self.fetch)
        asked, of_fill = Signal.like(self.fetch), Signal.like(self.fetch)
        for fetch, number in ((asked, self.id), (of_fill, self.fill_id)):
            with m.Switch(number):
                for k, each in enumerate(self.fetches):
                    with m.Case(k):
                        m.d.comb += fetch.eq(each)
        m.d.sync += [found.eq(asked), slot.eq(self.slot), now.eq(of_fill),
                     self.closing.eq(self.fill_id),
                     now.out.eq(of_fill.out & ~(self.close & (self.closing == self.fill_id)))]
        for k, fetch in enumerate(self.fetches):
            with m.If(self.close & (self.closing == k)):
                m.d.sync += fetch.out.eq(0)
            with m.If(self.open & (self.id == k)):
                m.d.sync += [fetch.out.eq(1), fetch.slot.eq(self.slot),
                             fetch.allocated.eq(self.allocated), fetch.phase.eq(self.phase)]
        m.d.comb += [
            self.fetch.eq(now), self.busy.eq(now.out), self.fill_slot.eq(now.slot),
            self.fill_allocated.eq(now.allocated), self.fill_phase.eq(now.phase),
            self.waiting.eq(found.out & found.allocated & (found.slot == slot)),
            self.expected.eq(~(self.open & asked.out) & (~self.close | self.busy))]
        return m


def plain_ids(bench: Bench, count: int) -> type:
    """Return a class with the ports of a free list that outputs any free number at any time.

    Members of the class
    --------------------
    out: the allocated numbers.
    expected: a returned number was allocated.
    """
    number, some = bench.free(range(count), "number"), bench.free(name="some")

    class PlainIds(Component):
        def __init__(self, count: int):
            super().__init__(_ports(FreeList, count))
            self.out, self.expected = Signal(count), Signal()

        def elaborate(self, platform) -> Module:
            m = Module()
            m.d.comb += [
                self.taken.valid.eq(some & ~self.out.bit_select(number, 1)),
                self.taken.payload.eq(number), self.idle.eq(1), self.expected.eq(
                    ~self.given.valid | self.out.bit_select(self.given.number, 1))]
            with m.If(self.given.valid):
                _set(m, self.out, self.given.number, 0)
            with m.If(self.taken.valid & self.taken.ready):
                _set(m, self.out, number, 1)
            return m

    return PlainIds


class Rest:
    """The content of a store of vectors of one bit, each in its own row.

    Members
    -------
    slots, landing: one bit per row.
    has_slot, has_landed: the row was written.
    """

    def __init__(self, m: Module, store, rows: int, ids: int):
        self.slots, self.landing = Signal(rows), Signal(ids)
        self.has_slot, self.has_landed, write = Signal(rows), Signal(ids), store.write
        with m.If(write.valid):
            m.d.sync += self.landing.bit_select(write.id, 1).eq(write.data[0])
            _set(m, self.has_landed, write.id, 1)
        with m.If(write.stored):
            m.d.sync += self.slots.bit_select(write.slot, 1).eq(write.data[0])
            _set(m, self.has_slot, write.slot, 1)
        if hasattr(store, "updates"):
            row = store.updates.payload
            with m.If(store.updates.valid & ~write.stored):
                m.d.sync += self.slots.bit_select(row.slot, 1).eq(row.data[0])
                _set(m, self.has_slot, row.slot, 1)

    def of(self, number: Value, *, landed: bool) -> tuple[Value, Value]:
        """Return the content of a row, and whether it is known."""
        row, known = ((self.landing, self.has_landed) if landed else (self.slots, self.has_slot))
        return Value.cast(row.bit_select(number, 1)), Value.cast(known.bit_select(number, 1))


def plain_store(bench: Bench) -> type:
    """Return a class with the ports of a store of vectors of one beat, which answers at any time.

    The answer appears in the cycle of the read. The real store gives the same answers in the same
    order, later; a bench that ignores answers cannot observe the difference. A row that was not
    written reads as any value. An updated row is visible in the next cycle. Member ``rest``: the
    content of the store.
    """
    now, which, junk = (bench.free(name=name) for name in ("reads", "which", "junk"))

    class PlainStore(Component):
        def __init__(self, meta_shape, *, rows: int, in_flight: int, vector_beats: int, style: str,
                     store_bits: int, updated: bool, lossy: bool):
            super().__init__(_ports(
                VectorStore, meta_shape, rows=rows, in_flight=in_flight,
                vector_beats=vector_beats, style=style, store_bits=store_bits, updated=updated,
                lossy=lossy))
            self.made = Module()
            self.rest = Rest(self.made, self, rows, in_flight)

        def elaborate(self, platform) -> Module:
            m, hit, waiter, vector = self.made, Signal(), Signal(), self.vectors.payload
            waits, hits = self.waiters.payload, self.hits.payload
            (landed, has_landed), (held, has) = (
                self.rest.of(waits.id, landed=True), self.rest.of(hits.slot, landed=False))
            m.d.comb += [
                hit.eq(now & ~which & self.hits.valid),
                waiter.eq(now & which & self.waiters.valid), self.hits.ready.eq(hit),
                self.waiters.ready.eq(waiter), self.vectors.valid.eq(hit | waiter),
                vector.data.eq(Mux(waiter, Mux(has_landed, landed, junk), Mux(has, held, junk))),
                vector.meta.eq(Mux(waiter, waits.meta, hits.meta)), vector.last.eq(1),
                self.released.valid.eq(waiter & waits.last), self.released.number.eq(waits.id),
                self.idle.eq(~self.hits.valid & ~self.waiters.valid)]
            if hasattr(self, "updates"):
                m.d.comb += [self.updates.ready.eq(~self.write.stored), vector.held.eq(hit),
                             vector.slot.eq(hits.slot)]
            return m

    return PlainStore


def plain_queue(shape, places: int) -> tuple[type, list[Signal], Signal]:
    """Return a class with the ports of a queue of few places, which outputs items one cycle later.

    Also return its items, with a bit ``held`` each, and the number of places that are not reserved.
    """
    held = data.StructLayout({"held": 1, "item": shape})
    items, left = [Signal(held, name=f"place{k}") for k in range(places)], Signal(
        range(places + 1), init=places)

    class PlainQueue(CreditQueue):
        def elaborate(self, platform) -> Module:
            m = Module()
            taken, following = Signal(), Signal.like(left)
            m.d.comb += [
                self.o.valid.eq(items[0].held), self.o.payload.eq(items[0].item),
                taken.eq(self.o.valid & self.o.ready), self.idle.eq(~items[0].held),
                following.eq(left + taken + self.unused - self.reserve)]
            m.d.sync += [left.eq(following), self.free.eq(following != 0)]
            came = Signal(held)
            m.d.comb += [came.held.eq(self.i.valid), came.item.eq(self.i.payload)]
            _queued(m, items, taken, came)
            return m

    return PlainQueue, items, left


class PlainFIFO(StreamFIFO):
    """A FIFO that outputs an item at any time, from the next cycle on, and always has room.

    Set ``SHOWS`` to a free signal: an item is output.

    Members
    -------
    places: its items, with a bit ``held`` each.
    room: an arriving item has a place.
    """

    SHOWS: Value

    def __init__(self, shape, depth: int, *, style: str | None = None):
        super().__init__(shape, depth, style=style)
        self.held = data.StructLayout({"held": 1, "item": shape})
        self.places = [Signal(self.held, name=f"place{k}") for k in range(depth)]
        self.room = Signal()

    def elaborate(self, platform) -> Module:
        m, front = Module(), self.places[0]
        came, taken = Signal(self.held), Signal()
        m.d.comb += [
            self.i.ready.eq(1), self.o.valid.eq(front.held & self.SHOWS),
            self.o.payload.eq(front.item), taken.eq(self.o.valid & self.o.ready),
            self.idle.eq(~front.held), came.held.eq(self.i.valid), came.item.eq(self.i.payload),
            self.room.eq(~self.i.valid | taken | ~self.places[-1].held)]
        _queued(m, self.places, taken, came)
        return m


class TimedFIFO(StreamFIFO):
    """A FIFO of registers with the behaviour of :class:`rtl.stream.StreamFIFO` in each cycle.

    ``test_streams`` proves the equivalence.

    Members
    -------
    front: the output item, with a bit ``held``.
    places: the items behind it, each with a bit ``held``.
    """

    def __init__(self, shape, depth: int, *, style: str | None = None):
        super().__init__(shape, depth, style=style)
        self.held = data.StructLayout({"held": 1, "item": shape})
        self.places = [Signal(self.held, name=f"place{k}") for k in range(depth)]
        self.front = Signal(self.held)

    def elaborate(self, platform) -> Module:
        m, first = Module(), self.places[0]
        came, pull = Signal(self.held), Signal()
        m.d.comb += [
            self.i.ready.eq(~self.places[-1].held), self.o.valid.eq(self.front.held),
            self.o.payload.eq(self.front.item), pull.eq(first.held & (
                ~self.front.held | self.o.ready)), self.idle.eq(~first.held & ~self.front.held),
            self.level.eq(sum(place.held for place in self.places)),
            came.held.eq(self.i.valid & self.i.ready), came.item.eq(self.i.payload)]
        with m.If(pull):
            m.d.sync += self.front.eq(first)
        with m.Elif(self.o.ready):
            m.d.sync += self.front.held.eq(0)
        _queued(m, self.places, pull, came)
        return m


def _queued(m: Module, places: list[Signal], taken: Value, came: Signal) -> None:
    """Advance items when the first one is taken, and append the arriving item."""
    for k, place in enumerate(places):
        after = places[k + 1] if k + 1 < len(places) else Signal.like(place, name="none")
        before = places[k - 1].held if k else Signal(init=1, name="some")
        with m.If(taken):
            m.d.sync += place.eq(Mux(after.held | ~place.held, after, came))
        with m.Elif(before & ~place.held):
            m.d.sync += place.eq(came)
