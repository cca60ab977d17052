"""Row bounds: compares all rows of a segment with the number of rows of its table."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

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
        # More keys than a beat contains are as good as all: the upper bits of ``keys`` are not
        # added. Rows up to the last key, from the first word on, if words have one or two.
        low = exact_log2(2 * RECORDS_PER_BEAT)
        small, all_rows = Signal(), Signal()
        one, two = Signal(low + 1), Signal(low + 2)
        begin, end = (Signal(range(RECORDS_PER_BEAT + 1), name=name) for name in ("begin", "end"))
        m.d.comb += [
            small.eq(self.rows[_NARROW:] == 0),
            begin.eq(segment.first + segment.head), end.eq(segment.first + segment.size),
            all_rows.eq(segment.keys[low:].any()), one.eq(begin + segment.keys[:low]),
            two.eq((begin << 1) + segment.keys[:low]),
        ]
        for k in range(RECORDS_PER_BEAT):
            word = segment.words.word_select(k, RECORD_BITS)
            halves = data.View(data.ArrayLayout(_NARROW, 2), word)
            inside, beyond = Signal(name=f"inside{k}"), Signal(2, name=f"beyond{k}")
            above = word[_NARROW:ROW_BITS]
            m.d.comb += [
                inside.eq((k >= begin) & (k < end)),
                beyond.eq(Cat(half >= self.rows[:_NARROW] for half in halves)),
            ]
            with m.If(self.wide):
                m.d.comb += found[k].eq(inside & (all_rows | (k < one)) & (
                    word[ROW_BITS:].any() | (above > self.rows[_NARROW:])
                    | ((above == self.rows[_NARROW:]) & beyond[0])))
            with m.Else():
                m.d.comb += found[k].eq(inside & small & (
                    ((all_rows | (2 * k < two)) & beyond[0])
                    | ((all_rows | (2 * k + 1 < two)) & beyond[1])))
        verdicts = Signal(RECORDS_PER_BEAT // _JOINED)
        with m.If(self.enable):
            m.d.sync += verdicts.eq(Cat(
                found.word_select(k, _JOINED).any() for k in range(len(verdicts))))
        m.d.comb += self.bad.eq(verdicts.any())
        return m
