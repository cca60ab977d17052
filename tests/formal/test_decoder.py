"""Proof of the vector decoder: each beat leaves as its one or two beats of values, in order.

The proof covers runs of any length, any format, and an even or odd number of beats of float32. It
has one lane, whose converter is a register, and two beats in flight. Beats of a vector and stalls
occur at any time. Each beat leaves in a bounded time.
"""

import pytest
from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import Component

from rtl.float import HalfConverter
from rtl.formats import ValueFormat
from rtl.interaction.decoder import VectorDecoder
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

BEAT = data.StructLayout({"data": 32, "beat_last": 1, "lost": 1})
INSIDE = 3
"""Most beats of values: as many as the output holds, and the upper lanes of a beat."""
PATIENCE = 4


class PlainConverter(Component):
    """A converter that takes one cycle and keeps all bits."""

    def __init__(self):
        super().__init__(HalfConverter().signature)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.sync += self.o.eq(self.i)
        return m


def decoded(*edits: tuple[str, str]) -> Bench:
    """Return a bench that picks any beat and follows it; each half has one bit."""
    bench = Bench()
    m = bench.m
    block = variant(VectorDecoder, *edits, LANES=1, BEAT_BITS=32, _HALF=16,
                    HALF_CONVERTER_LATENCY=1, HalfConverter=PlainConverter)
    block.OUT_BEATS = 2
    m.submodules.dut = dut = block(BEAT, 2)
    form, beats = bench.constant(ValueFormat, "form"), bench.constant(2, "beats")
    odd = beats[0]
    m.d.comb += [dut.value_format.eq(form), dut.value_beats.eq(beats)]
    low, high, last, lost = (bench.free(name=name) for name in ("low", "high", "last", "lost"))
    item = data.View(BEAT, Cat(low, Const(0, 15), high, Const(0, 15), last, lost))
    entered = bench.source(dut.i, item.as_value())
    left = bench.sink(dut.o, "o")

    short = form != ValueFormat.FLOAT32
    came, out = dut.i.payload, dut.o.payload
    splits = short & ~(came.beat_last & odd)
    inside = Signal(range(INSIDE + 4))
    m.d.sync += inside.eq(inside + Mux(entered, 1 + splits, 0) - left)
    waiting, ahead, kept = Signal(), Signal.like(inside), Signal(BEAT)
    two, second = Signal(), Signal()  # the picked beat becomes two; its first has left
    mine = waiting & left & (ahead == 0)
    with m.If(waiting):
        with m.If(mine):
            m.d.sync += [second.eq(1), waiting.eq(two & ~second)]
        with m.Elif(left):
            m.d.sync += ahead.eq(ahead - 1)
    with m.Elif(entered & bench.free(name="pick")):
        m.d.sync += [waiting.eq(1), kept.eq(came), ahead.eq(inside - left), two.eq(splits),
                     second.eq(0)]
    bench.always("none_invented", ~left | (inside != 0))
    bench.always("bounded", inside <= INSIDE)
    bench.always("values", ~mine | (
        (out.data[0] == Mux(second, kept.data[16], kept.data[0]))
        & (short | (out.data == kept.data))))
    bench.always("fields", ~mine | (
        (out.lost == kept.lost) & (out.beat_last == (kept.beat_last & (second | ~two)))))
    bench.within("leaves", PATIENCE, dut.o.ready & (inside != 0), left)
    bench.within("takes", PATIENCE + 1, dut.o.ready & ~dut.i.ready, entered | dut.i.ready)
    bench.always("idle", dut.idle == (inside == 0))
    return bench


def test_decoder():
    verdict = prove(decoded())
    assert verdict.holds, verdict


@pytest.mark.parametrize("old, new, wrong", [
    ("upper.eq(two)", "upper.eq(0)", "bounded none_invented values"),
    ("chosen.data[:_HALF].eq(chosen.data[_HALF:])", "chosen.data[:_HALF].eq(chosen.data[:_HALF])",
     "values"),
    ("chosen.beat_last.eq(item.beat_last & ~two)", "chosen.beat_last.eq(item.beat_last)", "fields"),
    ("taken.eq(some & credit.some)", "taken.eq(some)", "bounded idle none_invented"),
    ("self.i.ready.eq(credit.some & ~upper)", "self.i.ready.eq(credit.some)",
     "bounded values"),
    ("short & ~(item.beat_last & self.value_beats[0])", "short",
     "none_invented values fields idle"),
    ("credit.up.eq(self.o.valid & self.o.ready)", "credit.up.eq(0)", "leaves idle"),
], ids=["one-half", "half-twice", "ends-early", "overrun", "overwritten", "odd-split",
        "places-lost"])
def test_broken_decoder(old, new, wrong):
    verdict = prove(decoded((old, new)), depth=16)
    assert set(verdict.broken) & set(wrong.split()), verdict
