"""Proof of the vector decoder: each lane beat leaves as its one or two beats, in order.

Beats have two 2-bit values in one lane. A pipeline without conversion replaces the converters; a
test of all values shows the conversion (tests/rtl/float/test_half.py).
"""

from itertools import pairwise

import pytest
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.formats import ValueFormat
from rtl.interaction import VectorDecoder
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

BEATS, LATENCY = 2, VectorDecoder.LATENCY["beat", "its first beat of float32"]
SLOT = data.StructLayout({"data": 4, "sample": 1, "beat_last": 1})


class PlainConverter(wiring.Component):
    """Delays a 2-bit value as the converter does."""

    i: In(16)
    bfloat: In(1)
    o: Out(32)

    def elaborate(self, platform) -> Module:
        m = Module()
        stages = [self.i[:2], *(Signal(2, name=f"stage{n}") for n in range(3))]
        m.d.sync += [after.eq(before) for before, after in pairwise(stages)]
        m.d.comb += self.o.eq(stages[-1])
        return m


def decoder(*edits: tuple[str, str]) -> Bench:
    """Return a bench that knows the beats of each beat in."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(
        VectorDecoder, ("OUT_BEATS = 16", f"OUT_BEATS = {BEATS}"), *edits, _HALF=2, LANES=1,
        HalfConverter=PlainConverter)(SLOT, 2)
    entered, left = bench.source(dut.i), bench.sink(dut.o, "o")
    short, beats, item = bench.constant(name="short"), bench.constant(2, "beats"), dut.i.payload
    m.d.comb += [dut.value_format.eq(Mux(short, ValueFormat.FLOAT16, ValueFormat.FLOAT32)),
                 dut.value_beats.eq(beats)]

    # A beat in: its only or first beat out, and in the next cycle its second.
    two, second, kept = Signal(), Signal(), Signal(SLOT)
    first, value = Signal(SLOT), Signal(SLOT)
    m.d.comb += [
        two.eq(short & ~(item.beat_last & beats[0])), first.eq(item),
        first.data.eq(Mux(short, item.data[:2], item.data)),
        first.beat_last.eq(item.beat_last & ~two), value.eq(Mux(second, kept, first)),
    ]
    m.d.sync += [second.eq(entered & two), kept.eq(item), kept.data.eq(item.data[2:])]
    bench.always("apart", ~(entered & second))
    inside = bench.in_order("values", entered | second, value, left, dut.o.payload, BEATS + 1)
    bench.within("leaves", LATENCY + 1, dut.o.ready & (inside != 0), left)
    bench.always("takes", dut.i.ready | (inside != 0) | Cat(left, second).any())
    bench.always("idle", dut.idle == (inside == 0))
    return bench


def test_decoder():
    verdict = prove(decoder())
    assert verdict.holds, verdict


@pytest.mark.parametrize("old, new", [
    ("credit.some & ~upper", "credit.some"),
    ("credit.down.eq(taken)", "credit.down.eq(taken & ~upper)"),
    ("chosen.beat_last.eq(ends)", "chosen.beat_last.eq(1)"),
    ("~(item.beat_last & self.value_beats[0])", "~self.value_beats[0]"),
    ("beat_last.eq(ends), upper.eq(0)", "beat_last.eq(ends)"),
], ids=["lost", "overrun", "wrong-end", "half-lost", "twice"])
def test_broken_decoder(old, new):
    assert not prove(decoder((old, new))).holds
