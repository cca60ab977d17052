"""Proof of the partial receiver's shares, without bound: no source exceeds its share.

A packet is admitted whole, exactly if with it the beats of its source do not exceed the share and
all beats do not exceed the depth. There are two sources, a depth of four beats, and packets of two
or three; beats arrive and are freed at any time. Counts have 16 bits in the hardware and three
here.
"""

import pytest
from amaranth.hdl import Mux, Signal
from amaranth.lib import data

from rtl.gradient.partial_buffer import PartialBuffer
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

SOURCES, DEPTH, BITS = 2, 4, 3
CYCLES = 14


def shared(*edits: tuple[str, str]) -> Bench:
    """Return a bench that counts the beats of each source that are admitted and not yet freed."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(
        PartialBuffer, *edits, ("(Ram(16, self", f"(Ram({BITS}, self"),
        ("before = Signal(16,", f"before = Signal({BITS},"),
        ("gone_copy.read_data)[:16]", f"gone_copy.read_data)[:{BITS}]"))(SOURCES, DEPTH)
    share, given, beat = bench.constant(BITS, "share"), dut.i.payload, dut.i.payload.beat
    m.d.comb += dut.share.eq(share)

    # A packet has a beat of records, and as many values as records.
    number, two, source = Signal(2), Signal(), Signal()
    first, taken = number == 0, dut.i.valid & dut.i.ready
    of, long = Signal(), Signal()
    m.d.comb += [
        of.eq(Mux(first, bench.free(name="source"), source)),
        long.eq(Mux(first, bench.free(name="two"), two)), dut.i.valid.eq(bench.free(name="offers")),
        beat.source.eq(of), beat.records.eq(Mux(first, 1 + long, 0)),
        beat.last.eq(number == 1 + long), given.count.eq(Mux(first, 1 + long, 0))]
    with m.If(taken):
        m.d.sync += [number.eq(Mux(beat.last, 0, number + 1)), source.eq(of), two.eq(long)]

    # The admission of a packet is known two cycles after its second beat.
    told = data.StructLayout({"valid": 1, "source": 1, "beats": 2})
    stages = [Signal(told, name=f"told{k}") for k in range(2)]
    m.d.sync += [stages[0].valid.eq(taken & (number == 1)), stages[0].source.eq(of),
                 stages[0].beats.eq(2 + long), stages[1].eq(stages[0])]
    now, refused = stages[1], dut.refused != 0
    admits = now.valid & ~refused
    here = [Signal(BITS, name=f"here{k}") for k in range(SOURCES)]
    node, frees = bench.free(name="node"), Signal(2)
    held = Mux(node, here[1], here[0])
    freed = bench.free(2, "freed")
    m.d.comb += [frees.eq(Mux(freed <= held, freed, 0)), dut.freed.valid.eq(frees != 0),
                 dut.freed.node.eq(node), dut.freed.beats.eq(frees)]
    after = [Signal(BITS + 1, name=f"after{k}") for k in range(SOURCES)]
    for k, count in enumerate(here):
        m.d.comb += after[k].eq(count + Mux(admits & (now.source == k), now.beats, 0))
        m.d.sync += count.eq(after[k] - Mux(node == k, frees, 0))
        bench.always(f"share_{k}", count <= share)
    bench.always("depth", here[0] + here[1] <= DEPTH)
    # The counts in the cycle after a packet's first beat decide whether it has room.
    came, had, all_had = Signal(), Signal(BITS + 1), Signal(BITS + 2)
    m.d.sync += came.eq(taken & first)
    with m.If(came):
        m.d.sync += [had.eq(Mux(source, after[1], after[0])), all_had.eq(after[0] + after[1])]
    had_now, all_now = Signal.like(had), Signal.like(all_had)
    m.d.sync += [had_now.eq(had), all_now.eq(all_had)]
    # The next packet's first beat arrives after the second beat of this packet.
    bench.always("fair", ~(now.valid & refused) | (had_now + now.beats > share)
                 | (all_now + now.beats > DEPTH))
    bench.always("told", ~refused | (now.valid & (dut.refused == now.beats)))
    return bench


@pytest.mark.thorough
def test_partial_shares():
    verdict = prove(shared())
    assert verdict.holds, verdict


@pytest.mark.few(1, "thorough")
@pytest.mark.few(3)
@pytest.mark.parametrize("wrong, old, new", [
    ("share", "here <= self.share - wanted", "here <= self.share"),
    ("share", "room.eq(in_depth & in_share)", "room.eq(in_depth)"),
    ("depth", "room.eq(in_depth & in_share)", "room.eq(in_share)"),
    ("fair", "here <= self.share - wanted", "here < self.share - wanted"),
    ("fair", "gone.read_data + self.freed.beats, 0)", "gone.read_data + 1, 0)"),
    ("share", "came.write_en.eq(taken | ~swept)", "came.write_en.eq(~swept)"),
    ("depth", "Mux(taken, needed, 0) - freed", "Mux(taken, 1, 0) - freed"),
    ("fair", "Mux(swept, source, address)", "Mux(swept, 0, address)"),
    ("told", "self.refused.eq(Mux(leave & first & ~admit, needed, 0))",
     "self.refused.eq(Mux(leave & ~admit, packet, 0))"),
], ids=["without-it", "no-share", "no-depth", "one-less", "freed-one", "never-counted",
        "first-beat-only", "of-another", "told-again"])
def test_broken_partial_shares(wrong, old, new):
    verdict = prove(shared((old, new)), depth=CYCLES)
    assert any(name.startswith(wrong) for name in verdict.broken), verdict
