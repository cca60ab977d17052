"""Proof of the scatter lists, without bound: each waiter comes out once, after its id is closed.

Two ids and two nodes; appends, closings and stalls at any time. With three nodes, so that a list
may stand behind one of two waiters, bounded: no violation in the first 13 cycles.
"""

import pytest
from amaranth.hdl import Cat, Signal

from rtl.cache.number_pool import NumberPool
from rtl.cache.scatter_list import ScatterList
from tests.formal.bench import Bench
from tests.formal.mutants import variant
from tests.formal.prove import prove
from tests.formal.waiting import Waiting

IDS, DEPTH = 2, 13
MUTANT_DEPTH = 18


def listed(nodes: int, *edits: tuple[str, str]) -> Bench:
    """Return a bench that marks one waiter, any, and follows it; its meta has one more bit."""
    bench = Bench()
    m = bench.m
    lists = variant(ScatterList, *edits, NumberPool=variant(NumberPool, AHEAD=2))
    m.submodules.dut = dut = lists(2, in_flight=IDS, waiters=nodes)
    add, mark, first, close = (bench.free(name=n) for n in ("add", "mark", "first", "close"))
    waiting = Waiting(m, IDS, nodes, dut)
    # A node is reserved two cycles before it is known whether it is needed.
    held = Signal(2)
    m.d.sync += held.eq(Cat(dut.reserve, held))
    m.d.comb += [
        dut.reserve.eq(bench.free(name="reserve") & dut.space), dut.unused.eq(held[1] & ~add),
        dut.add.eq(held[1] & add), dut.add_first.eq(first),
        dut.add_id.eq(bench.free(range(IDS), "add_id")),
        dut.add_meta.eq(Cat(mark & ~waiting.seen, bench.free(name="meta"))),
        dut.close.eq(close), dut.close_id.eq(bench.free(range(IDS), "close_id"))]
    taken = bench.sink(dut.waiters, "waiters")
    bench.assume(waiting.expected)
    bench.always("allowed", waiting.allowed)
    # The one that is shown has given its node back already.
    bench.always("bounded", waiting.total <= nodes + 1)
    bench.within("comes", 6, dut.waiters.ready & Bench.any_of(
        of.closed for of in waiting.lists), taken)
    bench.within("space", 4, (waiting.total < nodes) & ~held.any(), dut.space)
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
    ("at_end.eq(~there == tail)", "at_end.eq(1)", "allowed"),
    ("valid.eq(~at_end), here.eq(following.read_data)", "valid.eq(~at_end), here.eq(here)",
     "allowed"),
    ("following.write_addr.eq(tails.read_data)", "following.write_addr.eq(node)",
     "allowed"),
    ("heads.write_en.eq(self.add & self.add_first)", "heads.write_en.eq(self.add)", "allowed"),
    ("free.given.valid.eq(step)", "free.given.valid.eq(step & at_end)", "space"),
    ("free.given.number.eq(~there)", "free.given.number.eq(0)", "allowed"),
    ("(step & at_end))", "step)", "idle"),
    ("load.eq(next_valid & (~valid |", "load.eq(next_valid & (0 |", "comes"),
], ids=["first-only", "same-again", "link-of-another", "head-moves", "nodes-lost", "node-twice",
        "next-list-too-early", "never-begun"])
def test_broken_scatter_list(old, new, wrong):
    verdict = prove(listed(3, (old, new)), depth=MUTANT_DEPTH)
    assert wrong in verdict.broken, verdict
