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

    With ``split`` as the beats whose exact sum they are: the nearest binary32, the nearest of the
    remainder, and so on. Finished lanes give +0, or -0 if the sum is -0, so that the beats of an
    entry may be added to another sum as its terms would be. Infinities and NaN are finished at
    once; sums beyond the largest finite number give that out as often as needed.

    A unit rounds ``lanes / units`` lanes of a beat, one after the other. Entries rotate in a ring
    of 8 places, and each takes that many: one beat per turn, so that beats of different entries
    take turns; those of one come in order. Latency and rate: see ``LATENCY`` and ``RATE``.

    Without ``split``, or with its input ``rounded``, each entry gives one beat, its sums rounded
    once, and the entries keep their order.

    Parameters: ``meta_shape``, ``lanes``; ``units``, by default as many as lanes; with ``split``
    half as many at least; ``split``.

    Ports: ``sums``: input stream of :func:`~rtl.float.exact.exact_sum_layout` of ``units`` lanes,
    the parts of an entry without a gap, lowest lanes first. ``rounded``: In(1), only with
    ``split``; fixed while not ``idle``. ``o``: output stream of
    :func:`~rtl.float.exact.exact_term_layout`. ``idle``.

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

        # ring[n]: what entered n + 1 cycles ago. ``emit``: it has a place among the output beats.
        place = data.StructLayout({
            "valid": 1, "emit": 1, "meta": self._meta, "count": range(2 * EXACT_TERMS)})
        ring = [Signal(place, name=f"ring{n}") for n in range(EXACT_ROUNDER_LATENCY)]
        entering, front = Signal(place), ring[-1]
        taken, room, come, enter, some = Signal(range(_PLACES + 1)), *(Signal() for _ in range(4))
        # Whether the beat of the front is the last of its entry, and whether the entry goes round
        # once more. Much depends on it, so both are registers: ``ends`` is known a cycle before.
        ends, last, on = (Signal() for _ in range(3))
        # Which part of an entry enters the ring, and which leaves it. All turns of an entry begin
        # with the same part, and the other parts follow the first.
        turns = self._lanes // self._units
        turn, entered, begin, counted = Signal(range(turns)), Signal(), Signal(), Signal()
        m.d.sync += [
            *(later.eq(sooner) for later, sooner in zip(ring, [entering, *ring])),
            last.eq(ends), on.eq(ring[-2].valid & ~(ring[-2].emit & ends)),
            # Whether any place of the ring is taken: ``idle``, from which much follows, asks it.
            some.eq(Cat(slot.valid for slot in [entering, *ring[:-1]]).any()),
        ]
        m.d.comb += [
            begin.eq(turn == 0),
            # A place taken a cycle ago is not counted yet; with several parts, there is none.
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
            # Whether one enters is known late in a cycle, so it is counted in the next.
            counted.eq(entering.emit & begin),
            taken.eq(taken + counted - (self.o.valid & self.o.ready)),
            entered.eq(enter),
            # It stops while the ring is empty, so that idle cycles do not count.
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
            # ``part``: all lanes of one part are done; ``both``: and those of the part before.
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
