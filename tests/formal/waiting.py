"""The allowed outputs of scatter lists, and a substitute for them in proofs that makes any of them.
"""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import Component

from rtl.cache.scatter_list import ScatterList
from tests.formal.bench import Bench

__all__ = ["BEHIND", "Waiting", "any_lists"]

BEHIND = 2
"""Waiters that have released their node and are not taken yet: the number of places behind the RAMs
of the proved lists."""


class Waiting:
    """The waiters, of which any one is marked: bit 0 of its meta is 1, and 0 for all others.

    Members
    -------
    lists: for each id: ``count``, the number of waiters; ``closed``; ``marked``: the marked waiter
        is among them.
    allowed: the current output is allowed. Its id is closed and has a waiter; it has the flag
        ``last`` exactly if it is the last; it is the marked waiter, with its appended meta, at the
        latest when no other is left.
    expected: the inputs obey the contract: an append to an id that is not closed, flagged as first
        exactly if it is the first of its list; a closing of a list that has a waiter and is not
        closed.
    seen: the marked waiter has arrived; no second one may.
    total: number of waiters, including those on their way out.
    """

    def __init__(self, m: Module, ids: int, nodes: int, lists):
        waiter, taken = lists.waiters.payload, lists.waiters.valid & lists.waiters.ready
        adds_marked = lists.add & lists.add_meta[0]
        self.lists = [Signal(data.StructLayout({
            "count": range(nodes + BEHIND + 1), "closed": 1, "marked": 1}), name=f"list{k}")
            for k in range(ids)]
        self.total, self.kept = Signal(range(nodes + BEHIND + 2)), Signal.like(waiter.meta)
        self.seen = Signal()
        m.d.sync += self.total.eq(self.total + lists.add - taken)
        with m.If(adds_marked):
            m.d.sync += [self.kept.eq(lists.add_meta), self.seen.eq(1)]
        may, broken = [], []
        for k, of in enumerate(self.lists):
            here, adds = waiter.id == k, lists.add & (lists.add_id == k)
            closes = lists.close & (lists.close_id == k)
            may.append(here & of.closed & (of.count != 0) & (waiter.last == (of.count == 1))
                       & Mux(waiter.meta[0], of.marked & (waiter.meta == self.kept),
                             ~(of.marked & waiter.last)))
            broken += [adds & (of.closed | (lists.add_first != (of.count == 0))),
                       closes & (of.closed | (of.count == 0))]
            leaves = taken & here
            m.d.sync += of.count.eq(of.count + adds - leaves)
            with m.If(closes):
                m.d.sync += of.closed.eq(1)
            with m.If(leaves & waiter.last):
                m.d.sync += of.closed.eq(0)
            with m.If(adds_marked & adds):
                m.d.sync += of.marked.eq(1)
            with m.If(leaves & waiter.meta[0]):
                m.d.sync += of.marked.eq(0)
        self.allowed = ~lists.waiters.valid | Bench.any_of(may)
        self.expected = ~Bench.any_of(broken)


def any_lists(bench: Bench, ids: int, nodes: int) -> tuple[type, Value, Value]:
    """Return a class with the ports of scatter lists that makes any allowed output.

    Also return the assumption of ``bench``, and the assumption in the proof of the lists about
    their surroundings. The meta of waiters that are not marked is output as 0.
    """
    allowed, expected = Signal(init=1), Signal(init=1)
    # Free signals must exist before the bench is converted, so they are created here.
    space, show, mark, last = (bench.free(name=name) for name in ("space", "show", "mark", "last"))
    id_ = bench.free(range(ids), "shown_id")

    class AnyLists(Component):
        def __init__(self, meta_shape, *, in_flight: int, waiters: int):
            alike = ScatterList(meta_shape, in_flight=in_flight, waiters=waiters)
            alike._MustUse__silence = True  # type: ignore[attr-defined]
            super().__init__(alike.signature)
            self.made = Module()
            self.waiting = Waiting(self.made, ids, nodes, self)

        def elaborate(self, platform) -> Module:
            m, waiting = self.made, self.waiting
            shown, kept = Signal(), Signal(data.StructLayout({
                "marked": 1, "id": range(ids), "last": 1}))
            waiter, held = self.waiters.payload, Signal(range(nodes + 1))
            m.d.sync += held.eq(held + self.reserve - self.add - self.unused)
            with m.If(~shown | self.waiters.ready):
                m.d.sync += [shown.eq(show), kept.marked.eq(mark), kept.id.eq(id_),
                             kept.last.eq(last)]
            m.d.comb += [
                self.waiters.valid.eq(shown), waiter.id.eq(kept.id), waiter.last.eq(kept.last),
                waiter.meta.eq(Mux(kept.marked, waiting.kept, 0)),
                self.space.eq(space & (waiting.total + held < nodes + BEHIND)),
                self.idle.eq(~shown & ~Bench.any_of(of.closed for of in waiting.lists)),
                allowed.eq(waiting.allowed), expected.eq(waiting.expected)]
            return m

    return AnyLists, allowed, expected
