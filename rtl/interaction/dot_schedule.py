"""Dot schedule: decides when each pair is multiplied, and when a beat of dots is full."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import LANES, NicConfig
from rtl.float import DOT_LATENCY, DOT_TREE_LATENCY
from rtl.interaction.pairs import pair, pair_count, pair_groups
from rtl.interaction.slices import Slice, ring_depth

__all__ = ["REUSE", "DotGroup", "DotSchedule", "group_count"]

REUSE = DOT_LATENCY - DOT_TREE_LATENCY + 2
"""Cycles from a group to the first one that may add to its sums: they are written to a RAM."""


def group_count(config: NicConfig) -> int:
    """Return the most groups of a slice, and at least as many as keep two slices apart."""
    return max(pair_groups(config.interaction_vectors, config.dot_units, itself=True), REUSE)


def DotGroup(config: NicConfig) -> data.StructLayout:
    """Layout of the data that accompany a group through the dot units.

    ``number`` in its slice; ``first``, of the first slice: nothing to add to; ``keep``: of a slice
    before the final one, its sums are stored. ``count`` dots leave, into lanes from ``fill`` on;
    ``emit``: they fill a beat, or the sample ends; ``last``: the sample ends with that beat.
    """
    return data.StructLayout({
        "number": range(group_count(config)), "first": 1, "keep": 1, "count": range(LANES + 1),
        "fill": range(LANES), "emit": 1, "last": 1})


class DotSchedule(wiring.Component):
    """Enumerate the pairs of each slice in result order, ``dot_units`` a cycle.

    A group is the next ``dot_units`` pairs of the row-major lower triangle, so that dots come in
    the order in which they leave. The pairs of a group do not depend on the number of vectors, and
    come from a table. Only dots of the final slice leave; a group of it that fills a beat begins
    only when there is room for the beat.

    A sample whose last group fills one beat and begins another takes a cycle more for the second. A
    slice of fewer than :data:`REUSE` groups takes so many cycles where another slice of its sample
    follows, whose sums add to its own. Otherwise see ``RATE``.

    Parameters: ``config``; ``room``, the initial room in beats.

    Ports
    -----
    slices: stream of :func:`~rtl.interaction.slices.Slice`.
    itself: vectors are also paired with themselves; may change while idle.
    released: number of vectors of a finished slice, for one cycle.
    valid, group: a group, as :func:`DotGroup`.
    read_en, rows, columns: the places in the ring of the group's pairs, unit 0 first.
    left: a beat has left, which makes room.
    waiting: in the previous cycle, a group waited for room.
    idle: no slice is being processed; one may wait at ``slices``.
    """

    RATE = "1 group per cycle, one slice after another"

    def __init__(self, config: NicConfig, room: int):
        self._config, self._room = config, room
        self._units, self._depth = config.dot_units, ring_depth(config)
        self._slice, self._group = Slice(config), DotGroup(config)
        places = data.ArrayLayout(ceil_log2(self._depth), self._units)
        super().__init__({
            "slices": In(stream.Signature(self._slice)), "itself": In(1),
            "released": Out(self._slice["vectors"].shape),
            "valid": Out(1), "group": Out(self._group),
            "read_en": Out(1), "rows": Out(places), "columns": Out(places),
            "left": In(1), "waiting": Out(1), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        units, bits = self._units, ceil_log2(self._depth)
        active, now = Signal(), Signal(self._slice)
        number = Signal(range(group_count(self._config)))
        # Pairs that remain; whether the beat of the previous group is still to be ended.
        left, spilled = Signal(self._slice["pairs"].shape), Signal()
        fill, room = Signal(range(LANES)), Signal(range(self._room + 1), init=self._room)
        base, row_base = Signal(bits), Signal(bits)

        # This group: its number of pairs, and what happens to the beat of its dots.
        some, ending, count = Signal(), Signal(), Signal(range(LANES + 1))
        filled, emit, spills = Signal(range(2 * LANES)), Signal(), Signal()
        waits, go, done = Signal(), Signal(), Signal()
        m.d.comb += [
            some.eq(left.any()), ending.eq(left <= units),
            count.eq(Mux(now.final, Mux(ending, left, units), 0)),
            filled.eq(fill + count),
            emit.eq(spilled | (now.final & some & (ending | filled[4]))),
            spills.eq(ending & (filled > LANES)),
            waits.eq(active & emit & (room == 0)), go.eq(active & ~waits),
            done.eq(go & ending & ~spills & (now.final | (number >= REUSE - 1))),
        ]
        m.d.sync += [self.waiting.eq(waits), self.released.eq(Mux(done, now.vectors, 0))]
        m.d.sync += room.eq(room - (go & emit) + self.left)
        with m.If(go):
            m.d.sync += [
                left.eq(Mux(ending, 0, left - units)), number.eq(number + 1),
                fill.eq(filled), spilled.eq(spills),
            ]

        # The next slice follows without a gap.
        take, next_base = Signal(), Signal(bits)
        m.d.comb += [
            self.slices.ready.eq(~active | done), take.eq(self.slices.valid & self.slices.ready),
            next_base.eq(base + Mux(done, now.vectors, 0)),
        ]
        m.d.sync += base.eq(next_base)
        with m.If(done):
            m.d.sync += [active.eq(0), fill.eq(0), spilled.eq(0)]
        with m.If(take):
            m.d.sync += [
                active.eq(1), now.eq(self.slices.payload), left.eq(self.slices.payload.pairs),
                number.eq(0), row_base.eq(next_base - self.itself),
            ]

        # The table of pairs. Its registers have no reset, like those that they feed.
        table = self._table()
        pairs, group = Signal(len(table[0])), Signal(self._group, reset_less=True)
        rows, columns = (Signal.like(places, reset_less=True)
                         for places in (self.rows, self.columns))
        with m.Switch(number):
            for k, places in enumerate(table):
                with m.Case(k):
                    m.d.comb += pairs.eq(places)
        with m.If(active):
            for unit in range(units):
                places = pairs.word_select(unit, 2 * bits)
                m.d.sync += [
                    rows[unit].eq(row_base + places[:bits]),
                    columns[unit].eq(base + places[bits:]),
                ]
            m.d.sync += [
                group.number.eq(number), group.first.eq(now.first),
                group.keep.eq(some & ~now.final), group.count.eq(count), group.fill.eq(fill),
                group.emit.eq(emit), group.last.eq(ending & ~spills),
            ]
        m.d.sync += [self.valid.eq(go), self.read_en.eq(go & some)]
        m.d.comb += [self.rows.eq(rows), self.columns.eq(columns), self.group.eq(group)]
        m.d.comb += self.idle.eq(~active & ~self.valid & ~self.released.any())
        return m

    def _table(self) -> list[Const]:
        """Return row and column of each unit's pair, by group."""
        bits, most = ceil_log2(self._depth), pair_count(
            self._config.interaction_vectors, itself=True)
        rows = []
        for first in range(0, most, self._units):
            pairs = [pair(min(first + unit, most - 1)) for unit in range(self._units)]
            rows.append(Const.cast(Cat(
                Cat(Const(row, bits), Const(column, bits)) for row, column in pairs)))
        return rows
