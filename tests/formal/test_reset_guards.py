"""Proof of the guards at the edges of a NIC: no reset cuts a packet."""

import pytest
from amaranth.hdl import Cat, Mux, Signal

from rtl.formats import BEAT_BYTES
from rtl.network.reset_guards import HeadGuard, TailGuard
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import broken

MOST = 3
"""Beats of the longest packet."""


def tails(dut: TailGuard) -> Bench:
    """Return a bench in which a beat contains its position. A reset begins a new packet; in reset
    the source offers anything."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut
    hold, valid, ready = (bench.free(name=name) for name in ("hold", "valid", "ready"))
    at, kept, length = Signal(range(MOST)), Signal(2), Signal(2)
    given, beat = dut.i.payload, dut.o.payload
    m.d.comb += [
        length.eq(Mux(at == 0, bench.free(2, "length"), kept)),
        dut.hold.eq(hold), dut.i.valid.eq(valid), dut.o.ready.eq(ready),
        dut.i_bytes.eq(Mux(hold, bench.free(2, "any"), length) * BEAT_BYTES),
        given.data.eq(Mux(hold, bench.free(2, "any"), at)),
        given.last.eq(Mux(hold, bench.free(name="any"), at == length - 1)),
        given.keep.eq(-1),
    ]
    bench.assume(length != 0)
    with m.If(hold):
        m.d.sync += at.eq(0)
    with m.Elif(valid & dut.i.ready):
        m.d.sync += [at.eq(Mux(given.last, 0, at + 1)), kept.eq(length)]

    # The packet at the output: its position, and its length from its first beat.
    place, size, now = Signal(range(MOST + 1)), Signal(16), Signal(16)
    m.d.comb += now.eq(Mux(place == 0, dut.o_bytes, size))
    moves, filled = dut.o.valid & dut.o.ready, beat.data.all()
    with m.If(moves):
        m.d.sync += [place.eq(Mux(beat.last, 0, place + 1)), size.eq(now)]
    bench.always("same_length", ~moves | (dut.o_bytes == now))
    bench.always("ends", ~moves | (beat.last == ((place + 1) * BEAT_BYTES == now)))
    bench.always("data", ~moves | (beat.data == place) | (filled & (place != 0) & ~dut.idle))
    bench.always("keep", ~moves | beat.keep.all())
    bench.always("passes", ~dut.idle | hold | (
        (dut.o.valid == valid) & (dut.i.ready == ready) & (dut.o.payload == dut.i.payload)))
    bench.always("closed", ~(hold | ~dut.idle) | ~dut.i.ready)
    bench.within("completed", MOST, ~dut.idle & ready, dut.idle)
    return bench


def heads(dut: HeadGuard) -> Bench:
    """Return a bench with its own model of whether the beat at the input must pass."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut
    hold, before = bench.free(name="hold"), Signal(3)
    ready = bench.free(name="ready")
    m.d.sync += before.eq(Cat(hold, before))
    # Two cycles or more.
    bench.assume(hold | ~before[0] | before[1])
    m.d.comb += [dut.hold.eq(hold), dut.i.valid.eq(bench.free(name="valid")),
                 dut.o.ready.eq(ready), dut.i.payload.last.eq(bench.free(name="last")),
                 dut.i.payload.data.eq(bench.free(2, "data"))]
    inside, cut, comes = Signal(), Signal(), dut.i.valid & dut.i.ready
    m.d.sync += cut.eq((cut | (hold & inside)) & ~(comes & dut.i.payload.last))
    with m.If(comes):
        m.d.sync += inside.eq(~dut.i.payload.last)
    bench.always("closed", ~hold | ~(dut.i.ready | dut.o.valid))
    bench.always("passes", hold | cut | (
        (dut.o.valid == dut.i.valid) & (dut.i.ready == ready)
        & (dut.o.payload == dut.i.payload)))
    bench.always("drops", hold | ~cut | (~dut.o.valid & dut.i.ready))
    bench.always("told", dut.cut == (cut & comes & dut.i.payload.last))
    bench.always("idle", hold | (dut.idle == ~cut))
    return bench


@pytest.mark.thorough
@pytest.mark.parametrize("bench, block", [(tails, TailGuard), (heads, HeadGuard)])
def test_reset_guards(bench, block):
    verdict = prove(bench(block()))
    assert verdict.holds, verdict


@pytest.mark.thorough
@pytest.mark.few(2)
@pytest.mark.parametrize("bench, block, old, new", [
    (tails, TailGuard, "goes_on & (cut | self.hold)", "inside & (cut | self.hold)"),
    (tails, TailGuard, "goes_on & (cut | self.hold)", "goes_on & self.hold"),
    (tails, TailGuard, "final.eq(left == 2)", "final.eq(left == 1)"),
    (tails, TailGuard, "final.eq(beats == 2)", "final.eq(beats == 1)"),
    (tails, TailGuard, "Mux(cut, length, self.i_bytes)", "self.i_bytes"),
    (tails, TailGuard, "self.o.ready & ~cut & ~self.hold", "self.o.ready & ~self.hold"),
    (tails, TailGuard, "cut | (self.i.valid & ~self.hold)", "cut | self.i.valid"),
    (heads, HeadGuard, "rest.eq(inside)", "rest.eq(self.i.valid)"),
    (heads, HeadGuard, "rest.eq(rest & ~last)", "rest.eq(0)"),
    (heads, HeadGuard, "(self.o.ready | rest) & ~self.hold", "self.o.ready & ~self.hold"),
    (heads, HeadGuard, "self.i.valid & ~rest & ~self.hold", "self.i.valid & ~rest"),
], ids=["last-beat-cut", "cut-forgotten", "a-beat-late", "second-of-two", "length-lost",
        "taken-while-cut", "valid-in-reset", "whole-dropped", "a-beat-dropped", "waits-for-sink",
        "passes-in-reset"])
def test_broken_reset_guards(bench, block, old, new):
    assert not prove(bench(broken(block, old, new)())).holds
