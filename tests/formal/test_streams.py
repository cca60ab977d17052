"""Proofs of the stream blocks: items leave as they entered, in order, under any stalls."""

import pytest

from rtl.stream import SkidBuffer, StreamFIFO
from tests.formal.bench import Bench
from tests.formal.plain import TimedFIFO
from tests.formal.prove import prove
from tests.mutants import broken


def queue(dut, most: int, latency: int) -> Bench:
    """Return a bench of a first-in-first-out block of at most ``most`` items."""
    bench = Bench()
    bench.m.submodules.dut = dut
    entered, left = bench.source(dut.i), bench.sink(dut.o, "o")
    inside = bench.in_order("items", entered, dut.i.payload, left, dut.o.payload, most)
    bench.within("leaves", latency, dut.o.ready & (inside != 0), left)
    # No place is ever lost. One place is the output's, taken as soon as there is an item.
    bench.always("takes", dut.i.ready | (inside >= most - 1 + dut.o.valid))
    bench.always("idle", dut.idle == (inside == 0))
    return bench


def test_skid_buffer():
    verdict = prove(queue(SkidBuffer(2), 2, 0))
    assert verdict.holds, verdict


@pytest.mark.parametrize("old, new", [
    ("self.i.ready.eq(ready)", "self.i.ready.eq(1)"),
    ("held_valid.eq(0), ready", "ready"),
    ("self.o.ready | ~front_valid", "self.o.ready"),
    ("front.eq(held), ", ""),
], ids=["overrun", "held-twice", "stuck", "lost"])
def test_broken_skid_buffer(old, new):
    assert not prove(queue(broken(SkidBuffer, old, new)(2), 2, 0)).holds


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_fifo(depth):
    verdict = prove(queue(StreamFIFO(2, depth), depth + 1, 1))
    assert verdict.holds, verdict


def beside(plain: type) -> Bench:
    """Return a bench of a FIFO beside a FIFO of registers with the same behaviour in each cycle."""
    bench = Bench()
    m = bench.m
    m.submodules.dut, m.submodules.plain = dut, plain = StreamFIFO(1, 3), plain(1, 3)
    item, offers, takes = (bench.free(name=name) for name in ("item", "offers", "takes"))
    for fifo in (dut, plain):
        m.d.comb += [fifo.i.valid.eq(offers), fifo.i.payload.eq(item), fifo.o.ready.eq(takes)]
    bench.always("same", (dut.i.ready == plain.i.ready) & (dut.o.valid == plain.o.valid)
                 & (~dut.o.valid | (dut.o.payload == plain.o.payload))
                 & (dut.level == plain.level) & (dut.idle == plain.idle))
    return bench


def test_fifo_of_registers():
    verdict = prove(beside(TimedFIFO))
    assert verdict.holds, verdict


@pytest.mark.parametrize("old, new, what", [
    ("(~valid | self.o.ready)", "1", "o_holds"),
    ("holds(depth - 1) & push", "holds(depth - 2) & push", "takes"),
    ("grew.eq(push & ~pull)", "grew.eq(push)", "items_none_invented"),
    ("tail == depth - 1", "tail == depth - 2", "items_in_order"),
    ("pull.eq(some &", "pull.eq((self.level > 1) &", "leaves"),
], ids=["overwritten", "place-lost", "miscounted", "early-wrap", "last-kept"])
def test_broken_fifo(old, new, what):
    verdict = prove(queue(broken(StreamFIFO, old, new)(2, 3), 4, 1))
    assert not verdict.holds
    assert set(verdict.broken) & {what, "items_in_order"}


@pytest.mark.parametrize("old, new", [
    ("pull.eq(first.held & (", "pull.eq(first.held & self.i.valid & ("),
    ("self.i.ready.eq(~self.places[-1].held)", "self.i.ready.eq(~self.places[-1].held | pull)"),
], ids=["late", "early"])
def test_broken_fifo_of_registers(old, new):
    assert not prove(beside(broken(TimedFIFO, old, new))).holds
