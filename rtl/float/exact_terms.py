"""Beats of binary32 for exact sums: the nearest, or the shortest list that adds up to them."""

from amaranth.hdl import Cat, Module, ShapeLike, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES
from rtl.float.exact import (
    EXACT_TERMS,
    check_lanes,
    exact_sum_layout,
    exact_term_layout,
)
from rtl.float.exact_round import EXACT_ROUNDER_LATENCY, ExactRounder
from rtl.shared import Shared
from rtl.stream import StreamFIFO

__all__ = ["ExactTerms"]

_PLACES = 32
"""Beats that may wait for who takes them: the FIFO is LUTRAM, whose size this is anyway."""


class ExactTerms(wiring.Component):
    """Give out each entry's sums as binary32.

    With ``split`` as the beats whose exact sum they are: the nearest binary32, the nearest of what
    is left, and so on. Lanes that are finished give +0, or -0 where the sum is -0: the beats of an
    entry may be added to another sum as its terms would be. Infinities and NaN are finished at
    once; sums beyond the largest finite number give that out as often as needed.

    Entries go round in a ring of 8 places, one beat per turn, so that beats of different entries
    take turns; those of one come in order. Throughput one beat per cycle where 8 entries are there
    or each needs one beat. Latency 10 cycles to the first beat, 8 more for each further one.

    Without ``split``, or with its input ``rounded``, each entry gives one beat, its sums rounded
    once, and the entries keep their order.

    Parameters: ``meta_shape``, ``lanes``; ``split``.

    Ports: ``sums``: input stream of :func:`~rtl.float.exact.exact_sum_layout`. ``rounded``: In(1),
    only with ``split``; fixed while not ``idle``. ``o``: output stream of
    :func:`~rtl.float.exact.exact_term_layout`. ``idle``.

    Raises ``ValueError`` for lanes out of range.
    """

    def __init__(self, meta_shape: ShapeLike, *, split: bool, lanes: int = LANES):
        check_lanes(lanes)
        self._meta, self._split, self._lanes = meta_shape, split, lanes
        self._term = exact_term_layout(meta_shape, lanes)
        super().__init__({
            "sums": In(stream.Signature(exact_sum_layout(meta_shape, lanes))),
            **({"rounded": In(1)} if split else {}),
            "o": Out(stream.Signature(self._term)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.beats = beats = StreamFIFO(self._term, _PLACES)
        wiring.connect(m, beats.o, wiring.flipped(self.o))
        rounders = [
            Shared(ExactRounder(rest=self._split),
                   "exact_rounder_rest" if self._split else "exact_rounder")
            for _ in range(self._lanes)]

        # ring[n]: what entered n + 1 cycles ago. ``emit``: it has a place among the beats.
        place = data.StructLayout({
            "valid": 1, "emit": 1, "meta": self._meta, "count": range(2 * EXACT_TERMS)})
        ring = [Signal(place, name=f"ring{n}") for n in range(EXACT_ROUNDER_LATENCY)]
        entering, front = Signal(place), ring[-1]
        taken, room, enter, last, on = Signal(range(_PLACES + 1)), Signal(), *(
            Signal() for _ in range(3))
        m.d.sync += [later.eq(sooner) for later, sooner in zip(ring, [entering, *ring])]
        m.d.comb += [
            room.eq(taken != _PLACES), last.eq(1),
            on.eq(front.valid & ~(front.emit & last)),
            enter.eq(~on & room & self.sums.valid), self.sums.ready.eq(~on & room),
            entering.valid.eq(on | enter), entering.emit.eq(entering.valid & room),
            entering.meta.eq(self.sums.payload.meta), entering.count.eq(1),
            beats.i.valid.eq(front.emit), beats.i.payload.meta.eq(front.meta),
            beats.i.payload.count.eq(front.count), beats.i.payload.last.eq(last),
            self.idle.eq((taken == 0) & ~self.sums.valid & ~Cat(
                turn.valid for turn in ring).any()),
        ]
        m.d.sync += taken.eq(taken + entering.emit - (self.o.valid & self.o.ready))
        for number, unit in enumerate(rounders):
            m.submodules[f"rounder{number}"] = unit
            m.d.comb += [
                unit.i.eq(self.sums.payload.lanes[number]),
                beats.i.payload.data.word_select(number, 32).eq(unit.o),
            ]
            if self._split:
                m.d.comb += [
                    unit.enter.eq(~on), unit.hold.eq(~ring[4].emit), unit.once.eq(self.rounded)]
        if self._split:
            done = Signal(self._lanes)
            m.d.comb += [done[number].eq(unit.done) for number, unit in enumerate(rounders)]
            m.d.comb += last.eq(self.rounded | done.all())
            with m.If(on):
                m.d.comb += [
                    entering.meta.eq(front.meta),
                    entering.count.eq(front.count + front.emit),
                ]
        return m
