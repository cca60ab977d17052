"""Proof of the credit queue: no item with a reserved place is lost, and no place is lost."""

import pytest
from amaranth.hdl import Signal

from rtl.stream import CreditQueue
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import broken

DEPTH = 3


def queued(dut: CreditQueue) -> Bench:
    """Return a bench of a pipeline of any length: items for reserved places arrive at any time."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut
    started, places = Signal(range(DEPTH + 2)), Signal(range(2 * DEPTH + 3))
    comes = bench.free(name="comes") & (started != 0)
    unused = bench.free(name="unused") & (started > comes)
    m.d.comb += [
        dut.reserve.eq(bench.free(name="reserve") & dut.free), dut.unused.eq(unused),
        dut.i.valid.eq(comes), dut.i.payload.eq(bench.free(2, "item"))]
    m.d.sync += started.eq(started + dut.reserve - comes - unused)
    left = bench.sink(dut.o, "o")
    inside = bench.in_order("items", comes, dut.i.payload, left, dut.o.payload, DEPTH)
    m.d.comb += places.eq(inside + started)
    bench.always("no_more_than_places", places <= DEPTH)
    bench.within("leaves", 1, dut.o.ready & (inside != 0), left)
    # A place is free two cycles after its item left, and one cycle after it was found unused.
    bench.within("free_again", 1, places != DEPTH, dut.free)
    bench.always("idle", ~dut.idle | (inside == 0))
    return bench


def test_credit_queue():
    verdict = prove(queued(CreditQueue(2, DEPTH)))
    assert verdict.holds, verdict


@pytest.mark.parametrize("old, new, what", [
    ("rest[1:].any(), rest.any()", "rest.any(), rest.any()", "no_more_than_places"),
    ("left + returned + self.unused", "left + self.unused", "free_again"),
    ("left + returned + self.unused", "left + returned", "free_again"),
    ("left + returned + self.unused", "left + (returned | self.unused)", "free_again"),
    ("returned.eq(self.o.valid & self.o.ready)", "returned.eq(self.o.valid)",
     "no_more_than_places"),
    ("fifo.idle & ~returned", "~returned", "idle"),
], ids=["last-place-twice", "never-back", "unused-lost", "one-of-two", "back-early", "idle-full"])
def test_broken_credit_queue(old, new, what):
    verdict = prove(queued(broken(CreditQueue, old, new)(2, DEPTH)))
    assert what in verdict.broken, verdict
