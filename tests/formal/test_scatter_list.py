"""Proof of the scatter lists, without bound: each waiter leaves once, after its id is closed.

There are two ids and two nodes; appends, closings and stalls occur at any time. With three nodes,
so that a list may wait behind a list of two waiters, the proof is bounded: no violation in the
first 13 cycles.
"""

import pytest
from amaranth.hdl import Cat, Signal

from rtl.cache.free_list import FreeList
from rtl.cache.number_pool import NumberPool
from rtl.cache.scatter_list import ScatterList
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.waiting import BEHIND, Waiting
from tests.formal.wires import ShortFIFO, ShortQueue
from tests.mutants import variant

IDS, DEPTH = 2, 13
MUTANT_DEPTH = 22


def listed(nodes: int, *edits: tuple[str, str]) -> Bench:
    """Return a bench that marks any one waiter and follows it; its meta has one more bit."""
    bench = Bench()
    m = bench.m
    lists = variant(
        ScatterList, *edits, NumberPool=variant(NumberPool, AHEAD=2, StreamFIFO=ShortFIFO),
        FreeList=variant(FreeList, StreamFIFO=ShortFIFO), StreamFIFO=ShortFIFO, AHEAD=2,
        CreditQueue=ShortQueue)
    m.submodules.dut = dut = lists(2, in_flight=IDS, waiters=nodes)
    add, mark, first, close = (bench.free(name=n) for n in ("add", "mark", "first", "close"))
    waiting = Waiting(m, IDS, nodes, dut)
    # A node is reserved two cycles before the need for it is known.
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
    # Waiters behind the RAMs have released their nodes already.
    bench.always("bounded", waiting.total <= nodes + BEHIND)
    bench.within("comes", 8, dut.waiters.ready & Bench.any_of(
        of.closed for of in waiting.lists), taken)
    bench.within("space", 4, (waiting.total < nodes) & ~held.any(), dut.space)
    bench.always("idle", ~dut.idle | ~Bench.any_of(of.closed for of in waiting.lists))
    return bench


@pytest.mark.thorough
def test_scatter_list():
    verdict = prove(listed(2), seconds=900)
    assert verdict.holds, verdict


@pytest.mark.slow
def test_scatter_list_of_three():
    verdict = prove(listed(3), depth=DEPTH)
    assert verdict.holds, verdict


@pytest.mark.thorough
@pytest.mark.few(4)
@pytest.mark.parametrize("old, new, wrong", [
    ("last.eq(next_last)", "last.eq(1)", "allowed"),
    ("following.read_data == before", "following.read_data != before", "allowed"),
    ("pair.eq(next_head == next_before)", "pair.eq(0)", "allowed"),
    ("following.read_addr.eq(here)", "following.read_addr.eq(head)", "allowed"),
    ("following.read_en.eq(step)", "following.read_en.eq(1)", "allowed"),
    ("following.write_addr.eq(tails.read_data)", "following.write_addr.eq(successor)",
     "allowed"),
    ("heads.write_en.eq(self.add & self.add_first)", "heads.write_en.eq(self.add)", "allowed"),
    ("free.given.valid.eq(step)", "free.given.valid.eq(step & last)", "space"),
    ("free.given.number.eq(here)", "free.given.number.eq(0)", "allowed"),
    ("(out.free & last))", "out.free)", "idle"),
    ("load.eq(some & (~valid |", "load.eq(some & (0 |", "comes"),
], ids=["first-only", "never-last", "pair-unknown", "same-again", "successor-lost",
        "link-of-another", "head-moves", "nodes-lost", "node-twice", "next-list-too-early",
        "never-begun"])
def test_broken_scatter_list(old, new, wrong):
    # With fewer nodes, a lost node is detected earlier.
    verdict = prove(listed(2 if wrong == "space" else 3, (old, new)), depth=MUTANT_DEPTH)
    assert wrong in verdict.broken, verdict
