"""Proof of the word store: a beat has at each word what was last written there, and zeros behind
the last word of its packet.

There are two buffers of two beats, and words of one bit. Segments of any size, from any word of a
beat to any word of a buffer, are written in any order, and beats are read at any time. The solver
picks a word of a buffer.
"""

import pytest
from amaranth.hdl import Mux, Signal

from rtl.bags.word_store import WordStore
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

BUFFERS, BEATS, WORDS = 2, 2, 8
STORED = WordStore.LATENCY["write", "segment in the RAMs"]


def stored(*edits: tuple[str, str]) -> Bench:
    """Return a bench that follows a picked word from its segment to its beat."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(WordStore, *edits, RECORD_BITS=1, BEAT_BITS=WORDS)(
        BUFFERS, BEATS)
    for name in ("write", "buffer", "position", "words", "first", "size", "read_en", "read_buffer",
                 "read_beat", "read_units"):
        port = getattr(dut, name)
        m.d.comb += port.eq(bench.free(len(port), name))
    bench.assume(dut.size <= WORDS - dut.first, dut.position + dut.size <= BEATS * WORDS,
                 dut.read_units <= BEATS * WORDS)

    buffer, place = bench.constant(1, "its_buffer"), bench.constant(4, "place")
    number = Signal(5)
    value, age, known = Signal(), Signal(range(STORED + 1)), Signal()
    m.d.comb += number.eq(place - dut.position)
    hit = dut.write & (dut.buffer == buffer) & (place >= dut.position) & (number < dut.size)
    m.d.sync += age.eq(Mux(age == STORED, STORED, age + 1))
    with m.If(hit):
        m.d.sync += [value.eq(dut.words.bit_select((dut.first + number)[:3], 1)), age.eq(1),
                     known.eq(1)]
    read = Signal(), Signal(), Signal()
    asks = dut.read_en & (dut.read_buffer == buffer) & (dut.read_beat == place[3:])
    m.d.sync += [read[0].eq(asks & known & (age == STORED)), read[1].eq(
        asks & (place >= dut.read_units)), read[2].eq(value)]
    seen = dut.data.bit_select(place[:3], 1)
    bench.always("word", ~read[0] | read[1] | (seen == read[2]))
    bench.always("zero", ~read[1] | ~seen)
    return bench


@pytest.mark.thorough
def test_word_store():
    verdict = prove(stored())
    assert verdict.holds, verdict


@pytest.mark.parametrize("wrong, old, new", [
    ("word", "row.eq(beat + (k < start))", "row.eq(beat)"),
    ("word", "(k < start)", "(k <= start)"),
    ("word", "source.eq(number + self.first)", "source.eq(number)"),
    ("word", "(number < self.size)", "(number <= self.size)"),
    ("word", "(number < self.size)", "1"),
    ("word", "number.eq(k - start)", "number.eq(k)"),
    ("word", "address2.eq(address1)", "address2.eq(Cat(row, self.buffer))"),
    ("zero", "with m.If(held[k])", "with m.If(1)"),
], ids=["one-beat", "next-beat", "from-the-first", "one-more", "all-lanes", "not-rotated",
        "next-address", "left-over"])
def test_broken_word_store(wrong, old, new):
    verdict = prove(stored((old, new)), depth=8)
    assert wrong in verdict.broken, verdict
