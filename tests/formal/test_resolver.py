"""Proof of the resolver, without bound: each decision is carried out once, and none blocks for
ever.

There are two slots, two ids and two places for operations. Decisions, nodes and answers of the miss
table arrive at any time. Answers are those that the miss table allows: while a decision is in
front, a fetch that it could wait for may end, but none begins, because only an earlier decision
begins it.

``test_cache_rows`` and ``test_dedupe_rows`` follow a lookup through the whole cache, in the first
cycles after reset. A waiting lookup that does not return its place has an effect only when no place
is left: no further decision is carried out. This is later than their search, so it is proved here.
"""

import pytest
from amaranth.hdl import Cat, Signal

from rtl.cache.resolver import Resolver
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.wires import ShortQueue
from tests.mutants import variant

PLACES = 2
"""Operations in flight or waiting that fit into a :class:`~tests.formal.wires.ShortQueue`."""


def resolved(*edits: tuple[str, str]) -> Bench:
    """Return a bench that follows each decision over the answer of the miss table to its end."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(Resolver, *edits, CreditQueue=ShortQueue)(
        1, 1, rows=2, in_flight=2)
    free = Signal(dut.decisions.payload.shape())
    m.d.comb += [free[name].eq(bench.free(name=name)) for name in (
        "key", "meta", "hit", "allocate", "phase", "id", "slot")]
    entered, decision = bench.source(dut.decisions, free), dut.decisions.payload
    left, operation = bench.sink(dut.operations, "operations"), dut.operations.payload
    m.d.comb += dut.space.eq(bench.free(name="space"))

    # An answer applies to the decision that was in front in the previous cycle.
    stayed, over = Signal(), Signal()
    m.d.sync += [stayed.eq(dut.decisions.valid & ~entered), over.eq(stayed & ~dut.waiting)]
    m.d.comb += dut.waiting.eq(bench.free(name="waiting") & ~over)

    # Step 1 queries, and begins a fetch.
    bench.always("opened", (dut.open == (entered & ~decision.hit)) & (~dut.open | (
        Cat(dut.id, dut.slot, dut.allocated, dut.phase)
        == Cat(decision.id, decision.slot, decision.allocate, decision.phase))))
    bench.always("in_space", ~dut.reserve | (entered & dut.space))

    # Step 2 has the answer: a hit waits or reads its slot; a miss requests its vector.
    asked, kept, reserved = Signal(), Signal.like(decision), Signal()
    m.d.sync += [asked.eq(entered), kept.eq(decision), reserved.eq(dut.reserve)]
    waits = asked & kept.hit & dut.waiting
    inside = bench.in_order(
        "operations", asked & ~waits, Cat(~kept.hit, kept.id, kept.slot, kept.key, kept.meta),
        left, Cat(operation.miss, operation.id, operation.slot, operation.key, operation.meta),
        PLACES)

    # Step 3 appends waiting lookups, and each miss as the first of its list. A reserved node is
    # used or released; no other node is.
    done, now, node, appends = Signal(), Signal.like(decision), Signal(), Signal()
    waited = Signal()
    m.d.sync += [done.eq(asked), now.eq(kept), node.eq(reserved), waited.eq(waits),
                 appends.eq(waits | (asked & ~kept.hit))]
    bench.always("appended", (dut.add == appends) & (~dut.add | (
        Cat(dut.add_first, dut.add_id, dut.add_meta) == Cat(~now.hit, now.id, now.meta))))
    bench.always("nodes", (dut.add + dut.unused) == node)
    bench.always("told", (dut.done.valid == done) & (~done | (
        (dut.done.pending == waited) & (dut.done.decision == now))))

    # While operations are taken, a decision advances in bounded time if it has a node or needs
    # none.
    due = dut.decisions.valid & dut.operations.ready
    bench.within("goes", 1, due & dut.space, entered)
    bench.within("needs_no_node", 2, due & stayed & decision.hit & ~dut.waiting, entered)
    bench.always("blocked", (dut.blocked.valid == (dut.decisions.valid & ~entered))
                 & (~dut.blocked.valid | dut.blocked.full | ~dut.space))
    bench.always("idle", dut.idle == ~(dut.decisions.valid | asked | done | (inside != 0)))
    return bench


def test_resolver():
    verdict = prove(resolved())
    assert verdict.holds, verdict


@pytest.mark.few(4)
@pytest.mark.parametrize("wrong, old, new", [
    ("goes", "queue.unused.eq(done.pending)", "queue.unused.eq(0)"),
    ("told", "asked & kept.hit & self.waiting", "asked & kept.hit & 0"),
    ("operations_none_invented", "asked & ~(kept.hit & self.waiting)", "asked"),
    ("operations_in_order", "asked & ~(kept.hit & self.waiting)", "asked & ~kept.hit"),
    ("appended", "asked & (~kept.hit | self.waiting)", "asked & ~kept.hit"),
    ("appended", "self.add_first.eq(~now.hit)", "self.add_first.eq(1)"),
    ("nodes", "asked & reserved & kept.hit & ~self.waiting", "0"),
    ("nodes", "asked & reserved & kept.hit & ~self.waiting", "asked & kept.hit & ~self.waiting"),
    ("nodes", "direct.eq(stayed & ~go &", "direct.eq(self.decisions.valid & ~go &"),
    ("needs_no_node", "direct.eq(stayed & ~go &", "direct.eq(0 &"),
    ("in_space", "self.reserve.eq(go & ~direct)", "self.reserve.eq(go)"),
    ("opened", "self.open.eq(go & ~decision.hit)", "self.open.eq(~decision.hit)"),
], ids=["place-lost", "waiter-untold", "waiter-now", "hit-lost", "waiter-lost", "list-begun-again",
        "node-lost", "node-of-none", "answer-of-another", "never-direct", "node-without-space",
        "opened-twice"])
def test_broken_resolver(wrong, old, new):
    verdict = prove(resolved((old, new)))
    assert wrong in verdict.broken, verdict
