"""A minimal whole cache, each of whose parts is real or an over-approximation, and its invariant:
the location of each fetch and each waiter, and the values of the row."""

from dataclasses import dataclass
from itertools import pairwise

from amaranth.hdl import C, Cat, Mux, Signal, Value
from amaranth.lib import data

from rtl.cache.cache import EmbeddingCache
from rtl.cache.fills import FillWriter
from rtl.cache.resolver import Resolver, operation_layout
from tests.formal.bench import Bench
from tests.formal.plain import PlainTable, plain_ids, plain_queue, plain_store
from tests.formal.rows import any_tags
from tests.formal.waiting import BEHIND, any_lists
from tests.formal.wires import Wires
from tests.mutants import variant

__all__ = ["Whole"]

IDS, NODES, PLACES = 2, 2, 2
_COUNTED = "unsettled, entered = Signal(range(self._ids + 64)), Signal()"
_COUNTED_HERE = "unsettled, entered = Signal(3), Signal()"


@dataclass(frozen=True)
class Fetch:
    """Possible locations of the fetch of an id, one bit each, in order; the last one is its closed
    list.

    new: decided, queried, done.
    queued: one bit per place.
    out: outstanding, and two stages of a fill.
    arrived: in the third stage; closes: in the next cycle.
    waits: a hit on it that was queried, that is done.
    here: its row is pending.
    """

    new: list[Value]
    queued: list[Value]
    out: list[Value]
    arrived: Value
    closes: Value
    waits: list[Value]
    here: Value


class Whole:
    """The cache, its surroundings, and statements about its inside.

    There are one row, two fetches, two waiters, vectors of one bit, and two keys. The vector of key
    0 is 1. The other key represents all other keys, and its vector is 0. In any cycle, any lookup
    may arrive, any outstanding fetch may be filled, and any miss and answer may be taken. Any one
    lookup is marked in its ``meta``.

    updated: rows may be updated, though no row is in this class; the cache freezes and unfreezes in
    any cycle.

    Members
    -------
    due: the marked lookup is inside.
    kept: the key of the marked lookup is 0.
    update: the offered lookup is for an update.
    under_way: an update is in progress.
    memory: value of key 0 in memory.
    vector: value of key 0 that its slot has or will have.
    slot: value of the slot, including writes in flight.
    """

    META_BITS = 1
    EXACT = False

    def __init__(self, *edits: tuple[str, str, str], updated: bool = False):
        self.bench = bench = Bench()

        def edited(part: type, **names: object) -> type:
            return variant(part, *(edit[1:] for edit in edits if edit[0] == part.__name__), **names)

        beat = data.StructLayout({"id": 1, "data": 512, "last": 1, "lost": 1})
        tags, may_tags, tags_asked, self.pending = any_tags(
            bench, 1, updated=updated, exact=self.EXACT)
        lists, may_lists, lists_asked = any_lists(bench, IDS, NODES)
        queue, self.queue, self.left = plain_queue(
            operation_layout(1, self.META_BITS, 2, IDS), PLACES)
        # Counters have few bits here, and are visible.
        edits += (("EmbeddingCache", _COUNTED, f"{_COUNTED_HERE}; self.counted = unsettled"),)
        dut = edited(
            EmbeddingCache, SkidBuffer=Wires, TagPipeline=tags, ScatterList=lists,
            MissTable=PlainTable, FreeList=plain_ids(bench, IDS), VectorStore=plain_store(bench),
            Resolver=edited(Resolver, CreditQueue=queue),
            FillWriter=edited(FillWriter, FILL_ID_BITS=1, FillBeat=beat), FillBeat=beat,
            FILL_ID_BITS=1)(
                1, self.META_BITS, rows=2, ways=1, in_flight=IDS, waiters=2, vector_beats=1,
                store_bits=1, hash_key=lambda key: C(0, 32), updated=updated)
        # Elaborated here, because statements refer to its parts.
        dut._MustUse__silence = True
        self.dut, bench.m.submodules.dut = dut, dut.elaborate(None)
        self.parts = bench.m.submodules.dut.submodules
        # Assumptions of the proofs of these parts. Their outputs do not depend on their inputs in
        # the same cycle, so the argument is not circular.
        bench.always("tags_expected", tags_asked)
        bench.always("lists_expected", lists_asked)
        bench.assume(may_tags & may_lists)
        bench.always("table_expected", self.parts.table.expected)
        bench.always("ids_expected", self.parts.ids.expected)
        self.update = self.under_way = C(0)
        self.memory, self.vector, self.slot = C(1), C(1), self.parts.store.rest.slots[0]
        self._surround()
        self._stages()
        if updated:
            bench.m.d.comb += dut.frozen.eq(self.under_way | bench.free(name="frozen"))

    def _surround(self) -> None:
        """Offer lookups, take answers and misses, and fill requested vectors, all at any time."""
        bench, dut, m = self.bench, self.dut, self.bench.m
        lookup, answer, miss = dut.lookups.payload, dut.vectors.payload, dut.misses.payload
        self.marked, self.due, self.kept = (Signal(name=n) for n in ("marked", "due", "kept"))
        m.d.comb += [
            dut.sets.eq(1), dut.enable.eq(1), dut.merge.eq(1), dut.vector_beats.eq(1),
            dut.lookups.valid.eq(bench.free(name="offer")),
            lookup.key.eq(bench.free(name="key") & ~self.update),
            lookup.meta.eq(Cat(bench.free(name="mark") & ~self.marked, self.update)),
            # All answers of the substitute store are taken; it outputs them at any time.
            dut.vectors.ready.eq(1), dut.misses.ready.eq(bench.free(name="ready"))]
        self.enters = dut.lookups.valid & dut.lookups.ready & lookup.meta[0]
        self.leaves = dut.vectors.valid & answer.meta[0]
        with m.If(self.enters):
            m.d.sync += [self.marked.eq(1), self.due.eq(1), self.kept.eq(lookup.key == 0)]
        with m.Elif(self.leaves):
            m.d.sync += self.due.eq(0)
        self.busy, self.one, number = Signal(IDS), Signal(IDS), bench.free(range(IDS), "id")
        fills = dut.fills
        m.d.comb += [
            fills.valid.eq(bench.free(name="fill") & self.busy.bit_select(number, 1)),
            fills.payload.id.eq(number), fills.payload.last.eq(1),
            fills.payload.data.eq(self.one.bit_select(number, 1))]
        bench.always("fills_taken", ~fills.valid | fills.ready)
        with m.If(fills.valid):
            m.d.sync += self.busy.bit_select(number, 1).eq(0)
        with m.If(dut.misses.valid & dut.misses.ready):
            m.d.sync += [self.busy.bit_select(miss.id, 1).eq(1),
                         self.one.bit_select(miss.id, 1).eq((miss.key == 0) & self.memory)]
        bench.always("ids_apart", ~dut.misses.valid | ~self.busy.bit_select(miss.id, 1))

    def _stages(self) -> None:
        """Track registers that are not visible: a decision after its query, fills."""
        m, parts = self.bench.m, self.parts
        resolver, writer, row = parts.resolver, parts.writer, parts.tags.rows.rows[0]
        decided, shown = resolver.decisions.payload, resolver.decisions.valid
        self.shown, self.decided, self.done = shown, decided, resolver.done
        self.asked, self.was, self.reserved = Signal(), Signal.like(decided), Signal(2)
        asked, was, done, now = self.asked, self.was, self.done.valid, self.done.decision
        m.d.sync += [asked.eq(shown & resolver.decisions.ready), was.eq(decided),
                     self.reserved.eq(Cat(resolver.reserve, self.reserved))]
        self.filled = [Signal(data.StructLayout({"valid": 1, "id": 1}), name=f"filled{k}")
                       for k in range(2)]
        m.d.sync += [self.filled[0].eq(Cat(writer.fills.valid, writer.fills.payload.id)),
                     self.filled[1].eq(self.filled[0])]
        self.fetches = []
        for k in range(IDS):
            queued = [place.held & place.item.miss & (place.item.id == k) for place in self.queue]
            self.fetches.append(Fetch(
                new=[shown & ~decided.hit & (decided.id == k), asked & ~was.hit & (was.id == k),
                     done & ~now.hit & (now.id == k)],
                queued=queued, out=[*queued, self.busy[k], *(
                    each.valid & (each.id == k) for each in self.filled)],
                arrived=writer.complete & (writer.complete_id == k),
                closes=parts.scatter.close & (parts.scatter.close_id == k),
                waits=[asked & was.hit & resolver.waiting & (was.id == k),
                       done & self.done.pending & (now.id == k)],
                here=row.pending & (row.id == k)))

        self.of_row = Signal(IDS)  # the key of a fetch is 0
        with m.If(shown & resolver.decisions.ready & ~decided.hit):
            m.d.sync += self.of_row.bit_select(decided.id, 1).eq(decided.key == 0)

    def right(self, value: Value) -> Value:
        """Return whether the marked lookup may get this vector."""
        return Value.cast(value == self.kept)

    def answered(self) -> None:
        """State the property to prove: an answer once, with the correct vector, and not never."""
        bench, answer = self.bench, self.dut.vectors.payload
        bench.always("vector", ~self.leaves | self.right(answer.data[0]))
        bench.always("not_twice", ~self.leaves | self.due)
        # If the cache is idle and no fetch is outstanding, no lookup waits.
        bench.always("answered", ~(self.dut.idle & (self.busy == 0) & self.due))

    def settles(self, *, soon: bool = True) -> None:
        """State that the cache reports settled only if it has and, ``soon``, in bounded time when
        it has."""
        bench, dut, m, parts = self.bench, self.dut, self.bench.m, self.parts
        row, done = parts.tags.rows.rows[0], self.done
        self.entered = entered = Signal()
        m.d.sync += entered.eq(
            parts.tags.lookups.valid & parts.tags.lookups.ready & ~dut.frozen)
        # Lookups that may take the row, or have just done so; and the row's vector.
        new = bench.any_of([self.asked & self.was.allocate, done.valid & done.decision.allocate])
        unsettled = sum([
            self.shown & ~self.decided.frozen, self.asked & ~self.was.frozen,
            done.valid & ~done.decision.frozen, row.pending & ~new], C(0))
        bench.always("counted", dut.counted + entered == unsettled)
        bench.always("settled", ~dut.settled | (~self.pending & (unsettled == 0)))
        if not soon:
            return
        calm, settles = Signal(2), dut.frozen & (unsettled == 0)
        m.d.sync += calm.eq(Mux(settles, Cat(1, calm), 0))
        bench.always("settles", ~(settles & calm.all()) | dut.settled)

    def invariant(self) -> None:
        """State the locations of fetches and waiters, to make the property inductive."""
        bench, parts = self.bench, self.parts
        table, writer, waiting = parts.table, parts.writer, parts.scatter.waiting
        row = parts.tags.rows.rows[0]
        for k, (fetch, at) in enumerate(zip(table.fetches, self.fetches, strict=True)):
            of = waiting.lists[k]
            bench.always(f"one_place_{k}", parts.ids.out[k] == sum(
                [*at.new, *at.out, at.arrived, at.closes, of.closed], C(0)))
            bench.always(f"out_{k}", fetch.out == bench.any_of([*at.new[1:], *at.out]))
            bench.always(f"has_waiters_{k}", (of.count != 0) == bench.any_of(
                [*at.out, at.arrived, at.closes, of.closed]))
            # The pending row belongs to the fetch that has it.
            fills = at.arrived & writer.filled.valid
            bench.always(f"takes_row_{k}", ~(fetch.out & fetch.allocated) | (
                at.here & (row.phase == fetch.phase) & (fetch.slot == 0)))
            bench.always(f"fills_row_{k}", ~fills | (
                at.here & (row.phase == writer.filled.phase) & (writer.filled.slot == 0)))
            bench.always(f"pending_{k}", ~at.here | (fetch.out & fetch.allocated) | fills)
            bench.always(f"answer_{k}", ~(self.filled[1].valid & (self.filled[1].id == k)) | (
                table.busy & (table.fetch == fetch)))
            # Lookups that are about to wait: the list is not closed before.
            bench.always(f"waits_{k}", (
                ~at.waits[0] | bench.any_of([at.new[2], *at.out, at.arrived])) & (
                ~at.waits[1] | bench.any_of([*at.out, at.arrived, at.closes])))
        # Nodes of lists and places of the queue are used or released.
        lists, done, held = parts.scatter, self.done.valid, Signal(3)
        used, queued = lists.add | lists.unused, [place.held for place in self.queue]
        bench.m.d.sync += held.eq(held + lists.reserve - lists.add - lists.unused)
        bench.always("total", waiting.total == sum((of.count for of in waiting.lists), C(0)))
        bench.always("held", held == (self.asked & self.reserved[0]) + (done & self.reserved[1]))
        bench.always("bound", waiting.total + held <= NODES + BEHIND)
        bench.always("node", ~used | (done & self.reserved[1]))
        bench.always("places", self.left + sum(queued, C(0)) + self.asked + done == PLACES)
        bench.always("in_front", Cat(
            ~after | before for before, after in pairwise(queued)).all())

    def values(self) -> None:
        """State the values, and the location of the marked lookup."""
        bench, parts = self.bench, self.parts
        waiting, writer, rest = parts.scatter.waiting, parts.writer, parts.store.rest
        asked, was, done, now = self.asked, self.was, self.done.valid, self.done.decision
        row, shown, decided = parts.tags.rows.rows[0], self.shown, self.decided
        # The taking lookup is behind a place of the queue, or behind the done stage.
        behind = [[(row.id == k) & bench.any_of([*at.new[1:], *at.queued[place + 1:]])
                   for k, at in enumerate(self.fetches)] for place in range(PLACES)]
        behind.append([(row.id == k) & at.new[1] for k, at in enumerate(self.fetches)])
        for k, at in enumerate(self.fetches):
            of, one, of_row = waiting.lists[k], self.one[k], self.of_row[k]
            # The vector is on its way here, or has arrived.
            comes = bench.any_of([*at.out[PLACES:], at.arrived])
            known = comes | at.closes | of.closed
            bench.always(f"asks_{k}", (~at.new[1] | (of_row == (was.key == 0))) & (
                ~at.new[2] | (of_row == (now.key == 0))) & Cat(
                    ~here | (of_row == (place.item.key == 0))
                    for here, place in zip(at.queued, self.queue)).all())
            bench.always(f"value_{k}", ~known | ~one | of_row)
            bench.always(f"value_of_row_{k}", ~(comes & at.here & of_row) | (one == self.memory))
            bench.always(f"brings_{k}", ~at.arrived | (
                writer.write.valid & (writer.write.id == k) & (writer.write.data[0] == one)))
            bench.always(f"landed_{k}", ~(at.closes | of.closed) | (
                rest.has_landed[k] & (rest.landing[k] == one)))
            bench.always(f"row_of_{k}", ~at.here | (row.valid & (of_row == (row.key == 0))))
            bench.always(f"for_marked_{k}", ~bench.any_of([
                of.marked, at.waits[0] & was.meta[0], at.waits[1] & now.meta[0]]) | (
                    (of_row == self.kept) & (~known | self.right(one))))
            bench.always(f"marked_waits_{k}", ~of.marked | (
                (of.count != 0) & waiting.kept[0] & self.marked))
        bench.always("stored", writer.write.stored == writer.filled.valid)
        bench.always("row", ~(row.valid & ~row.pending) | (
            rest.has_slot[0] & (self.slot == ((row.key == 0) & self.vector))))
        places = sum([
            shown & decided.meta[0], asked & was.meta[0], done & now.meta[0],
            *(place.held & ~place.item.miss & place.item.meta[0] for place in self.queue),
            *(of.marked for of in waiting.lists)], C(0))
        bench.always("marked_once", (places == self.due) & (~self.due | self.marked)
                     & (~waiting.seen | self.marked))
        bench.always("of_its_key", Cat(
            ~(valid & of.meta[0]) | ((of.key == 0) == self.kept)
            for valid, of in ((shown, decided), (asked & ~was.hit, was), (done & ~now.hit, now))
        ).all())
        # If the marked lookup is to read the slot, its vector is there, and the lookup that takes
        # the row is behind it.
        slot_is = rest.has_slot[0] & self.right(rest.slots[0])
        its_row = ~row.pending & ((row.key == 0) == self.kept)
        bench.always("slot_asked", ~(
            asked & was.hit & ~parts.resolver.waiting & was.meta[0]) | (slot_is & its_row))
        reads = [*(place.held & ~place.item.miss & place.item.meta[0] for place in self.queue),
                 done & now.hit & ~self.done.pending & now.meta[0]]
        for k, (read, later) in enumerate(zip(reads, behind, strict=True)):
            bench.always(f"slot_read_{k}", ~read | (slot_is & (its_row | (
                row.pending & bench.any_of(later)))))
