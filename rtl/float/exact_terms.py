"""Conversion of exact sums to beats of binary32: the nearest, or the shortest exact list."""

from amaranth.hdl import Cat, Module, Mux, ShapeLike, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES
from rtl.float.exact import (
    EXACT_TERMS,
    check_lanes,
    check_units,
    exact_sum_layout,
    exact_term_layout,
)
from rtl.float.exact_round import EXACT_ROUNDER_LATENCY, ExactRounder
from rtl.shared import Shared
from rtl.stream import StreamFIFO

__all__ = ["ExactTerms"]

_PLACES = 32
"""Output beats that may wait: the FIFO is LUTRAM, which has this size anyway."""


class ExactTerms(wiring.Component):
    """Output each entry's sums as binary32.

    With ``split``, an entry leaves as a list of beats whose exact sum it is: the nearest binary32,
    the nearest of the remainder, and so on. Finished lanes output +0, or -0 if the sum is -0, so
    the beats of an entry may be added to another sum in place of its terms. Infinities and NaN are
    finished at once. Sums beyond the largest finite number output that number as often as needed.

    A unit rounds ``lanes / units`` lanes of a beat, one after the other. Entries rotate in a ring
    of 8 places, and each takes ``lanes / units`` places. Each turn outputs one beat, so beats of
    different entries take turns; the beats of an entry keep their order.

    Without ``split``, or with its input ``rounded``, each entry outputs one beat, its sums rounded
    once, and the entries keep their order.

    Parameters
    ----------
    meta_shape: shape of the data that accompany a sum.
    split: sums can leave as lists.
    lanes: binary32 of a beat.
    units: number of rounders, by default ``lanes``; with ``split`` at least half of them.

    Ports
    -----
    sums: input stream of :func:`~rtl.float.exact.exact_sum_layout` of ``units`` lanes, the parts of
        an entry without a gap, lowest lanes first.
    rounded: In(1), only with ``split``; must not change unless ``idle``.
    o: output stream of :func:`~rtl.float.exact.exact_term_layout`.
    idle: inactive until an input changes.

    Raises ``ValueError`` for lanes or units out of range.
    """

    LATENCY = {
        ("sums of an entry, with their last lanes", "its first beat"): 10,
        ("beat of an entry", "its next beat"): 8,
    }
    RATE = (
        "1 beat per cycle with a unit for each lane, where 8 entries are there or each needs "
        "one beat; half a beat with half the units, where 4 entries are there")

    def __init__(self, meta_shape: ShapeLike, *, split: bool, lanes: int = LANES,
                 units: int | None = None):
        check_lanes(lanes)
        self._units = lanes if units is None else units
        check_units(self._units, lanes)
        if split and 2 * self._units < lanes:
            raise ValueError(f"units must be at least half the lanes, {lanes}, to split, "
                             f"not {units!r}")
        self._meta, self._split, self._lanes = meta_shape, split, lanes
        self._term = exact_term_layout(meta_shape, lanes)
        super().__init__({
            "sums": In(stream.Signature(exact_sum_layout(meta_shape, self._units))),
            **({"rounded": In(1)} if split else {}),
            "o": Out(stream.Signature(self._term)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.beats = beats = StreamFIFO(self._term, _PLACES)
        wiring.connect(m, beats.o, wiring.flipped(self.o))
        units = [
            Shared(ExactRounder(rest=self._split),
                   "exact_rounder_rest" if self._split else "exact_rounder")
            for _ in range(self._units)]
        for number, unit in enumerate(units):
            m.submodules[f"rounder{number}"] = unit

        # ring[n]: the place that entered n + 1 cycles ago. ``emit``: it has a place among the
        # output beats.
        place = data.StructLayout({
            "valid": 1, "emit": 1, "meta": self._meta, "count": range(2 * EXACT_TERMS)})
        ring = [Signal(place, name=f"ring{n}") for n in range(EXACT_ROUNDER_LATENCY)]
        entering, front = Signal(place), ring[-1]
        taken, room, come, enter, some = Signal(range(_PLACES + 1)), *(Signal() for _ in range(4))
        # The beat at the front is the last one of its entry; the entry makes another turn. Much
        # logic depends on both, so they are registers: ``ends`` is known one cycle earlier.
        ends, last, on = (Signal() for _ in range(3))
        # Part of an entry that enters the ring, and that leaves it. All turns of an entry begin
        # with the same part, and the other parts follow the first.
        turns = self._lanes // self._units
        turn, entered, begin, counted = Signal(range(turns)), Signal(), Signal(), Signal()
        m.d.sync += [
            *(later.eq(sooner) for later, sooner in zip(ring, [entering, *ring])),
            last.eq(ends), on.eq(ring[-2].valid & ~(ring[-2].emit & ends)),
            # Any place of the ring is taken; ``idle`` depends on it, and much logic on ``idle``.
            some.eq(Cat(slot.valid for slot in [entering, *ring[:-1]]).any()),
        ]
        m.d.comb += [
            begin.eq(turn == 0),
            # A place taken one cycle ago is not counted yet; with several parts, there is none.
            room.eq(taken < _PLACES - (turns == 1)),
            come.eq(Mux(begin, room & self.sums.valid, entered)), enter.eq(come & ~(begin & on)),
            self.sums.ready.eq(Mux(begin, ~on & room, entered)),
            entering.valid.eq(on | come),
            entering.emit.eq(Mux(begin, (on | self.sums.valid) & room, ring[0].emit)),
            entering.meta.eq(self.sums.payload.meta), entering.count.eq(1),
            beats.i.valid.eq(front.emit & (turn == turns - 1)),
            beats.i.payload.meta.eq(front.meta),
            beats.i.payload.count.eq(front.count), beats.i.payload.last.eq(last),
            self.idle.eq((taken == 0) & ~self.sums.valid & ~some),
        ]
        m.d.sync += [
            # The entry of a beat is late, so it is counted in the next cycle.
            counted.eq(entering.emit & begin),
            taken.eq(taken + counted - (self.o.valid & self.o.ready)),
            entered.eq(enter),
            # The turn stops while the ring is empty, so idle cycles have no effect.
            turn.eq(Mux((some | come) & (turn != turns - 1), turn + 1, 0)),
        ]
        given = Cat(unit.o for unit in units)
        for earlier in range(turns - 1):
            waiting = Signal(len(given), reset_less=True, name=f"given{earlier}")
            with m.If(turn == earlier):
                m.d.sync += waiting.eq(given)
            m.d.comb += beats.i.payload.data.word_select(earlier, len(given)).eq(waiting)
        m.d.comb += [
            beats.i.payload.data.word_select(turns - 1, len(given)).eq(given),
            *(unit.i.eq(total) for unit, total in zip(units, self.sums.payload.lanes)),
        ]
        if self._split:
            # ``part``: all lanes of one part are done; ``both``: those of the previous part too.
            done, part, both, rounded = (Signal() for _ in range(4))
            m.d.comb += [
                done.eq(Cat(unit.done for unit in units).all()),
                ends.eq(rounded | (Mux(turn == turns - 1, part & done, both) if turns > 1
                                   else part)),
            ]
            m.d.sync += [part.eq(done), both.eq(part & done), rounded.eq(self.rounded)]
            for unit in units:
                m.d.comb += [
                    unit.enter.eq(~on), unit.hold.eq(~ring[4].emit), unit.once.eq(rounded)]
            with m.If(on):
                m.d.comb += [
                    entering.meta.eq(front.meta),
                    entering.count.eq(front.count + front.emit),
                ]
        else:
            m.d.comb += ends.eq(1)
        return m
