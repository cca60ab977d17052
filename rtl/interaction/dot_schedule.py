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
"""Cycles from a group to the first group that may add to its sums, which are written to a RAM."""


def group_count(config: NicConfig) -> int:
    """Return the most groups of a slice, at least the number that separates two slices."""
    return max(pair_groups(config.interaction_vectors, config.dot_units, itself=True), REUSE)


def DotGroup(config: NicConfig) -> data.StructLayout:
    """Layout of the data that accompany a group through the dot units.

    number: number of the group in its slice.
    first: group of the first slice: no sum to add to.
    keep: group of a slice before the final one: its sums are stored.
    count, fill: ``count`` dots leave, into lanes from ``fill`` on.
    emit: the dots fill a beat, or the sample ends.
    last: the sample ends with that beat.
    """
    return data.StructLayout({
        "number": range(group_count(config)), "first": 1, "keep": 1, "count": range(LANES + 1),
        "fill": range(LANES), "emit": 1, "last": 1})


_Step = data.StructLayout({
    "count": range(LANES + 1), "fill": range(LANES), "some": 1, "ending": 1, "spills": 1, "emit": 1,
    "ends": 1})
"""Action of a group. ``some``: it has pairs. ``ending``: no pairs remain after it. ``spills``: its
last dots begin a beat, which the next step ends. ``emit``: it needs room for a beat. ``ends``: it
ends the slice."""


class DotSchedule(wiring.Component):
    """Enumerate the pairs of each slice in result order, ``dot_units`` per cycle.

    A group is the next ``dot_units`` pairs of the row-major lower triangle, so dots arrive in
    output order. The pairs of a group do not depend on the number of vectors, and come from a
    table. Only dots of the final slice leave. A group of the final slice that fills a beat begins
    only with room for the beat.

    A sample whose last group fills a beat and begins another one takes one more cycle. A slice of
    fewer than :data:`REUSE` groups takes :data:`REUSE` cycles if another slice of its sample
    follows, because the sums of that slice add to its own.

    Parameters
    ----------
    config: sizes.
    room: initial room in beats.

    Ports
    -----
    slices: stream of :func:`~rtl.interaction.slices.Slice`.
    itself: pair vectors with themselves too; may change while idle.
    released: number of vectors of a finished slice, for one cycle.
    valid, group: a group, as :func:`DotGroup`.
    rows, columns: places in the ring of the pairs of the group that begins, unit 0 first: one cycle
        before ``valid``, and not registered; each unit has its own registers.
    left: a beat has left, which makes room.
    waiting: in the previous cycle, a group waited for room.
    idle: no slice is being processed; a slice may wait at ``slices``.
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
            "rows": Out(places), "columns": Out(places),
            "left": In(1), "waiting": Out(1), "idle": Out(1),
        })

    def elaborate(self, platform) -> Module:
        m = Module()
        units, bits = self._units, ceil_log2(self._depth)
        active, now = Signal(), Signal(self._slice)
        number = Signal(range(group_count(self._config)))
        base, row_base = Signal(bits), Signal(bits)
        # All inputs of the decision about a group are in registers when it begins, including the
        # number of pairs after it, whether there are any (more), and whether they fit into one
        # group (near).
        step, after = Signal(_Step, reset_less=True), Signal(_Step)
        left = Signal(self._slice["pairs"].shape, reset_less=True)
        more, near = Signal(reset_less=True), Signal(reset_less=True)
        room, full = Signal(range(self._room + 1), init=self._room), Signal()
        waits, go, done = Signal(), Signal(), Signal()
        m.d.comb += [
            waits.eq(active & step.emit & full), go.eq(active & ~(step.emit & full)),
            done.eq(go & step.ends),
        ]
        m.d.sync += [
            self.waiting.eq(waits), self.released.eq(Mux(done, now.vectors, 0)),
            room.eq(room - (go & step.emit) + self.left),
            full.eq(~self.left & (full | (active & step.emit & (room == 1)))),
        ]

        # The next group. Its dots follow in the same beat or, if this group fills the beat, in the
        # next one. Dots that spill into a beat after the last group take a separate step.
        fill, filled, over = Signal(range(LANES)), Signal(range(2 * LANES)), Signal()
        count = Signal(range(LANES + 1))
        m.d.comb += [
            count.eq(Mux(now.final, Mux(near, left, units), 0)), after.count.eq(count),
            fill.eq(step.fill + step.count), after.fill.eq(fill), filled.eq(fill + count),
            over.eq(filled > LANES),
            after.some.eq(more), after.ending.eq(near), after.spills.eq(near & over),
            after.emit.eq(step.spills | (now.final & more & (near | filled[4]))),
            after.ends.eq(near & ~over & (now.final | (number >= REUSE - 2))),
        ]
        with m.If(go):
            m.d.sync += [
                step.eq(after), number.eq(number + 1), more.eq(~near),
                left.eq(Mux(near, 0, left - units)), near.eq(near | (left <= 2 * units)),
            ]

        # The next slice follows without a gap.
        take, slice_, first = Signal(), self.slices.payload, Signal(_Step)
        some, ending = Signal(), Signal()
        m.d.comb += [
            self.slices.ready.eq(~active | done), take.eq(self.slices.valid & self.slices.ready),
            some.eq(slice_.pairs.any()), ending.eq(slice_.pairs <= units),
            first.some.eq(some), first.ending.eq(ending),
            first.count.eq(Mux(slice_.final, Mux(ending, slice_.pairs, units), 0)),
            first.emit.eq(slice_.final & some & (ending | (units == LANES))),
            first.ends.eq(ending & slice_.final),
        ]
        next_base, next_row = base + now.vectors, base + now.vectors - self.itself
        with m.If(done):
            m.d.sync += [active.eq(0), base.eq(next_base)]
        with m.If(take):
            m.d.sync += [
                active.eq(1), now.eq(slice_), step.eq(first), number.eq(0),
                more.eq(~ending), left.eq(Mux(ending, 0, slice_.pairs - units)),
                near.eq(slice_.pairs <= 2 * units),
                row_base.eq(Mux(active, next_row, base - self.itself)),
            ]

        # The table of pairs.
        table = self._table()
        pairs, group = Signal(len(table[0])), Signal(self._group, reset_less=True)
        with m.Switch(number):
            for k, places in enumerate(table):
                with m.Case(k):
                    m.d.comb += pairs.eq(places)
        for unit in range(units):
            places = pairs.word_select(unit, 2 * bits)
            m.d.comb += [
                self.rows[unit].eq(row_base + places[:bits]),
                self.columns[unit].eq(base + places[bits:]),
            ]
        with m.If(active):
            m.d.sync += [
                group.number.eq(number), group.first.eq(now.first),
                group.keep.eq(step.some & ~now.final), group.count.eq(step.count),
                group.fill.eq(step.fill), group.emit.eq(step.emit),
                group.last.eq(step.ending & ~step.spills),
            ]
        m.d.sync += self.valid.eq(go)
        m.d.comb += self.group.eq(group)
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
