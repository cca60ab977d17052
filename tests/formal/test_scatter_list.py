"""Proof of the scatter lists, without bound: each waiter comes out once, after its id is closed.

Two ids and two nodes; appends, closings and stalls at any time. With three nodes, so that a list
may stand behind one of two waiters, bounded: no violation in the first 13 cycles.
"""

import pytest
from amaranth.hdl import Cat

from rtl.cache.scatter_list import ScatterList
from tests.formal.bench import Bench
from tests.formal.mutants import variant
from tests.formal.prove import prove
from tests.formal.waiting import Waiting

IDS, DEPTH = 2, 13


def listed(nodes: int, *edits: tuple[str, str]) -> Bench:
    """Return a bench that marks one waiter, any, and follows it; its meta has one more bit."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(ScatterList, *edits)(2, in_flight=IDS, waiters=nodes)
    add, mark, first, close = (bench.free(name=n) for n in ("add", "mark", "first", "close"))
    waiting = Waiting(m, IDS, nodes, dut)
    m.d.comb += [
        dut.add.eq(add & dut.space), dut.add_first.eq(first),
        dut.add_id.eq(bench.free(range(IDS), "add_id")),
        dut.add_meta.eq(Cat(mark & ~waiting.seen, bench.free(name="meta"))),
        dut.close.eq(close), dut.close_id.eq(bench.free(range(IDS), "close_id"))]
    taken = bench.sink(dut.waiters, "waiters")
    bench.assume(waiting.expected)
    bench.always("allowed", waiting.allowed)
    # The one that is shown has given its node back already.
    bench.always("bounded", waiting.total <= nodes + 1)
    bench.within("comes", 5, dut.waiters.ready & Bench.any_of(
        of.closed for of in waiting.lists), taken)
    bench.within("space", 2, waiting.total < nodes, dut.space)
    bench.always("idle", ~dut.idle | ~Bench.any_of(of.closed for of in waiting.lists))
    return bench


def test_scatter_list():
    verdict = prove(listed(2))
    assert verdict.holds, verdict


@pytest.mark.slow
def test_scatter_list_of_three():
    verdict = prove(listed(3), depth=DEPTH)
    assert verdict.holds, verdict


@pytest.mark.few(4)
@pytest.mark.parametrize("old, new, wrong", [
    ("at_end.eq(here == tail)", "at_end.eq(1)", "allowed"),
    ("here.eq(following.read_data)", "here.eq(here)", "allowed"),
    ("following.write_addr.eq(tails.read_data)", "following.write_addr.eq(node)",
     "allowed"),
    ("heads.write_en.eq(self.add & self.add_first)", "heads.write_en.eq(self.add)", "allowed"),
    ("free.given.valid.eq(step)", "free.given.valid.eq(step & at_end)", "space"),
    ("free.given.number.eq(here)", "free.given.number.eq(0)", "allowed"),
    ("(step & at_end))", "step)", "idle"),
    ("load.eq(next_valid & (~valid |", "load.eq(next_valid & (0 |", "comes"),
], ids=["first-only", "same-again", "link-of-another", "head-moves", "nodes-lost", "node-twice",
        "next-list-too-early", "never-begun"])
def test_broken_scatter_list(old, new, wrong):
    verdict = prove(listed(3, (old, new)), depth=DEPTH)
    assert wrong in verdict.broken, verdict
