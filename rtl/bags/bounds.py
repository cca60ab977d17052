"""Row bounds: compares all rows of a segment with the number of rows of its table."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.bags.layouts import Segment
from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT, ROW_BITS

__all__ = ["RowBounds"]

_NARROW = 32
"""Bits of a row where a word contains two rows."""
_JOINED = 2
"""Words for each register of the verdict."""


class RowBounds(wiring.Component):
    """Find out whether a segment contains a row beyond its table.

    A row is bad if it is not less than ``rows``, or if a word of a ``wide`` bag has a bit above the
    row. Weights, words of other items, and the upper half of the last row word of an odd bag are
    not compared.

    Ports
    -----
    segment: :data:`rtl.bags.layouts.Segment`.
    rows: rows of the table of the bag.
    wide: the bag has one row per word, not two.
    enable: while 0, ``bad`` holds.
    bad: the segment of the last enabled cycle contains a bad row.
    """

    LATENCY = {("segment", "its verdict"): 1}
    RATE = "1 segment per cycle"

    def __init__(self):
        super().__init__({
            "segment": In(Segment), "rows": In(ROW_BITS), "wide": In(1),
            "enable": In(1, init=1), "bad": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        segment, found = self.segment, Signal(RECORDS_PER_BEAT)
        small, keys = Signal(), Signal(range(2 * RECORDS_PER_BEAT + 1))
        begin, end = (Signal(range(RECORDS_PER_BEAT + 1), name=name) for name in ("begin", "end"))
        m.d.comb += [
            small.eq(self.rows[_NARROW:] == 0),
            # More keys than a beat contains are as good as all.
            keys.eq(Mux(segment.keys >= 2 * RECORDS_PER_BEAT, 2 * RECORDS_PER_BEAT, segment.keys)),
            begin.eq(segment.first + segment.head), end.eq(segment.first + segment.size),
        ]
        for k in range(RECORDS_PER_BEAT):
            word = segment.words.word_select(k, RECORD_BITS)
            halves = data.View(data.ArrayLayout(_NARROW, 2), word)
            # The keys before the word, and whether it has one or two that count.
            place, inside, beyond = Signal(4, name=f"place{k}"), Signal(name=f"inside{k}"), Signal(
                2, name=f"beyond{k}")
            above = word[_NARROW:ROW_BITS]
            m.d.comb += [
                place.eq(k - begin), inside.eq((k >= begin) & (k < end)),
                beyond.eq(Cat(half >= self.rows[:_NARROW] for half in halves)),
            ]
            with m.If(self.wide):
                m.d.comb += found[k].eq(inside & (place < keys) & (
                    word[ROW_BITS:].any() | (above > self.rows[_NARROW:])
                    | ((above == self.rows[_NARROW:]) & beyond[0])))
            with m.Else():
                m.d.comb += found[k].eq(inside & small & (
                    (((place << 1) < keys) & beyond[0]) | (((place << 1) + 1 < keys) & beyond[1])))
        verdicts = Signal(RECORDS_PER_BEAT // _JOINED)
        with m.If(self.enable):
            m.d.sync += verdicts.eq(Cat(
                found.word_select(k, _JOINED).any() for k in range(len(verdicts))))
        m.d.comb += self.bad.eq(verdicts.any())
        return m
