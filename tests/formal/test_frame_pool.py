"""Proof of the frame pool: its free beats leave in the order of their return, so no beat is lost or
has two owners.

The proof covers runs of any length, with beats of one bit. One pool has four beats, in chains of at
most two, with two to spare, fewer than the block requires. Another has eight beats, in chains of at
most three, with as many to spare as the block requires. Induction needs an invariant, which is
stated too: the free beats and their order, the location of the other beats, and the link of each in
both copies.
"""

from itertools import pairwise

import pytest
from amaranth.hdl import Array, Cat, Mux, Signal, Value

from rtl.network.link.frame_pool import FramePool
from tests.formal.bench import Bench
from tests.formal.induction import by_induction
from tests.formal.prove import prove
from tests.formal.shown import LOCALS, ShownRam
from tests.mutants import variant

CHAINS = 2
SMALL, LARGER = (4, 2, 2), (8, 3, FramePool.SPARE)
DEPTH = 15


class Pooled:
    """The pool, beats taken and chains returned at any time, and statements.

    sizes: number of beats, beats of the longest chain, beats to spare.

    Members
    -------
    order: the ``free`` beats in the expected order.
    built: the chain of ``size`` beats being built.
    chains: the chains that wait to be returned, each with its size.
    """

    def __init__(self, *edits: tuple[str, str], sizes: tuple[int, int, int]):
        self.bench = bench = Bench()
        self.beats, self.longest, self.spare = sizes
        m, numbers = bench.m, range(self.beats)
        small = variant(
            FramePool, *edits, ("beats < 8", "beats < 4"),
            ("        return m\n", f"        {LOCALS.format('inner')}return m\n"),
            BEAT_BITS=1, Ram=ShownRam)
        self.dut = dut = small(self.beats)
        dut._MustUse__silence = True  # elaborated here, because statements refer to its parts
        m.submodules.dut = dut.elaborate(None)
        self.parts = m.submodules.dut.submodules
        self.free = Signal(range(self.beats + 1), init=self.beats)
        self.order = [Signal(numbers, name=f"order{k}", init=k) for k in numbers]

        def chain(name: str) -> tuple[list[Signal], Signal]:
            return [Signal(numbers, name=f"{name}_{k}") for k in range(self.longest)], Signal(
                range(self.longest + 1), name=f"{name}_size")

        # One chain is built, and another one returned.
        (self.built, self.size), self.chains = chain("built"), [
            chain(f"chain{k}") for k in range(CHAINS)]
        place, given = bench.free(range(CHAINS), "place"), bench.free(range(CHAINS), "given")
        self.take, closes = Signal(), Signal()
        m.d.comb += [
            self.take.eq(bench.free(name="take") & (self.free > self.spare)
                         & (self.size < self.longest)),
            closes.eq(bench.free(name="closes") & (self.size != 0) & ~self.take),
            dut.take.eq(self.take), dut.data.eq(bench.free(name="data"))]
        with m.If(self.take):
            m.d.sync += [self.size.eq(self.size + 1), Array(self.built)[self.size].eq(dut.beat)]
        back, back_size = chain("back")
        with m.Switch(given):
            for k, (items, size) in enumerate(self.chains):
                with m.Case(k):
                    m.d.comb += [back_size.eq(size), Cat(back).eq(Cat(items))]
        gives = dut.give.valid & dut.give.ready
        m.d.comb += [
            dut.give.valid.eq(bench.free(name="offers") & (back_size != 0)),
            dut.give.payload.first.eq(back[0]),
            dut.give.payload.last.eq(Array([back[0], *back])[back_size])]
        for k, (items, size) in enumerate(self.chains):
            with m.If(gives & (given == k)):
                m.d.sync += size.eq(0)
            with m.If(closes & (place == k) & (size == 0)):
                m.d.sync += [Cat(items).eq(Cat(self.built)), size.eq(self.size), self.size.eq(0)]
        m.d.sync += self.free.eq(self.free - self.take + Mux(gives, back_size, 0))
        for k, item in enumerate(self.order):
            after = self.order[k + 1] if k + 1 < self.beats else item
            new = (k - self.free + self.take)[:len(self.free)]
            with m.If(gives & (k + self.take >= self.free) & (new < back_size)):
                m.d.sync += item.eq(Array(back)[new])
            with m.Elif(self.take):
                m.d.sync += item.eq(after)
        self._watch(gives, back_size)

    def _watch(self, gives: Value, sizes: Value) -> None:
        """State the order of the beats."""
        bench, dut, m, take = self.bench, self.dut, self.bench.m, self.take
        # Beats leave the list in list order: at first 0, 1, 2 and so on.
        self.taken = taken = Signal(range(self.beats + 1))
        with m.If(take & (taken != self.beats)):
            m.d.sync += taken.eq(taken + 1)
        bench.always("first_lap", ~take | (taken == self.beats) | (
            dut.beat == taken[:len(dut.beat)]))
        # Later in the order of their return: the last beat of a picked chain, after the beats
        # before it.
        picked, kept, ahead = Signal(), Signal.like(dut.beat), Signal(range(self.beats + 1))
        with m.If(picked):
            with m.If(take):
                m.d.sync += [ahead.eq(ahead - 1), picked.eq(ahead != 0)]
        with m.Elif(gives & bench.free(name="pick")):
            m.d.sync += [picked.eq(1), kept.eq(dut.give.payload.last),
                         ahead.eq(self.free - take + sizes - 1)]
        bench.always("in_order", ~(picked & take & (ahead == 0)) | (dut.beat == kept))
        self.picked = picked, kept, ahead

    def invariant(self) -> None:
        """State the location and the link of each beat, to make all statements inductive."""
        bench, inner, order, free = self.bench, self.dut.inner, self.order, self.free
        head, fresh, linked, last = (
            inner["head"], inner["fresh"], inner["linked"], self.beats - 1)
        links, walked = Array(self.parts.links.cells), Array(self.parts.links_read.cells)
        bench.always("next", self.dut.beat == order[0])
        bench.always("free", (free >= self.spare) & (free <= self.beats))
        bench.always("taken", self.taken <= self.beats)
        bench.always("tail", inner["tail"] == Array([order[0], *order])[free])
        bench.always("fresh", fresh == (self.taken < last))
        bench.always("word", fresh | (self.parts.links.word == order[1]))
        # A link of the first lap is written one cycle after its beat is taken.
        bench.always("linked", ~linked | (
            (self.size != 0) & (inner["written"] == Array([0, *self.built])[self.size])
            & (inner["linked_to"] == head)))
        for number in range(self.beats):
            bench.always(f"one_place_{number}", sum(
                (k < size) & (item == number) for items, size in (
                    (order, free), (self.built, self.size), *self.chains)
                for k, item in enumerate(items)) == 1)
        picked, kept, ahead = self.picked
        bench.always("picked", ~picked | ((ahead < free) & (Array(order)[ahead] == kept)))
        bench.always("as_at_first", Cat(
            (self.taken + k > last) | (item == (self.taken + k)[:len(head)])
            for k, item in enumerate(order)).all() & (
                (self.taken > last) | (free >= self.beats - self.taken)))
        for k, (item, after) in enumerate(pairwise(order)):
            bench.always(f"link_{k}", (k + 1 >= free) | (self.taken + k < last)
                         | ((links[item] == after) & (walked[item] == after)))
        for name, items, size in (("built", self.built, self.size), *(
                (f"chain{k}", *chain) for k, chain in enumerate(self.chains))):
            for k, (item, after) in enumerate(pairwise(items)):
                bench.always(f"{name}_{k}", (k + 1 >= size) | (links[item] == after))
                # This is how a repeated packet is read.
                bench.always(f"{name}_{k}_read", (k + 1 >= size) | (walked[item] == after))
            bench.always(f"{name}_size", size <= self.longest)
        newest = Array([0, *self.built])[self.size]
        bench.always("link_to_head", (self.size == 0) | linked | (
            (links[newest] == head) & (walked[newest] == head)))


@pytest.mark.parametrize("sizes", [
    pytest.param(SMALL, id="small"),
    pytest.param(LARGER, id="larger", marks=pytest.mark.thorough)])
def test_frame_pool(sizes):
    made = Pooled(sizes=sizes)
    made.invariant()
    verdict = by_induction(made.bench)
    assert verdict.holds, verdict


def test_it_gets_round():
    """The proof includes runs in which a beat is taken for the third time."""
    made = Pooled(sizes=SMALL)
    bench, times = made.bench, Signal(2)
    bench.m.d.sync += times.eq(times + (made.take & (made.dut.beat == 0)))
    bench.broken.clear()
    bench.always("reached", times != 3)
    verdict = prove(bench, depth=2 * DEPTH)
    assert verdict.broken == ("reached",), verdict


@pytest.mark.parametrize("old, new", [
    ("tail.eq(self.give.payload.last)", "tail.eq(self.give.payload.first)"),
    ("self.give.ready.eq(~linked)", "self.give.ready.eq(1)"),
    ("fresh.eq(fresh & (head != last - 1))", "fresh.eq(fresh & (head != last))"),
    ("linked.eq(self.take & fresh)", "linked.eq(0)"),
    ("links.read_en.eq(self.take)", "links.read_en.eq(1)"),
], ids=["first-as-last", "link-overwritten", "lap-too-long", "no-link", "read-on"])
def test_broken_frame_pool(old, new):
    assert not prove(Pooled((old, new), sizes=SMALL).bench, depth=DEPTH).holds


@pytest.mark.thorough
def test_broken_invariant():
    """The mutant corrupts the links of a packet's beats when it is read again."""
    made = Pooled(("for ram in (links, walked):", "for ram in (links, links):"), sizes=SMALL)
    made.invariant()
    assert not by_induction(made.bench).holds
