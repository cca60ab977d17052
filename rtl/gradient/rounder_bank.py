"""Rounder bank: the units that convert exact sums to float32, shared by both reductions."""

from collections.abc import Sequence

from amaranth.hdl import Array, Cat, Module, Mux, ShapeLike, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES
from rtl.float import ExactTerms
from rtl.float.exact import EXACT, check_units, exact_sum_layout, exact_term_layout
from rtl.gradient.reducer import GradientReducer
from rtl.shared import Shared

__all__ = ["RounderBank"]


class RounderBank(wiring.Component):
    """Share one :class:`~rtl.float.ExactTerms` between the sums of two reductions.

    Local sums of a step leave before this node ends the step; global sums leave after every node
    has ended it. Neither therefore waits for the other, and separate units would be unused half of
    the time. The turn changes when the other side has sums and no sum is in flight; waiting sums
    stay in their table. The order of each side is kept.

    Parameters
    ----------
    meta_shape: shape of the data that accompany a sum.
    lanes: float32 of a beat.
    units: lanes that are rounded per cycle, by default half of the lanes.

    Ports
    -----
    sums: array of two input streams of :func:`~rtl.float.exact.exact_sum_layout`: of local
        reduction, which may leave as lists, and of global reduction, which leave rounded. A sum
        must stay unchanged until it is taken, with its last part.
    rounded: local sums leave rounded too. Must not change while a local sum is inside.
    terms: array of two output streams of :func:`~rtl.float.exact.exact_term_layout`.
    quiet: Out(2), no sum of that side is inside.
    idle: inactive until an input changes.

    Raises ``ValueError`` for lanes or units out of range.
    """

    LATENCY = ExactTerms.LATENCY
    RATE = f"{ExactTerms.RATE}; a cycle more where the turn changes"

    def __init__(self, meta_shape: ShapeLike, *, lanes: int = LANES, units: int | None = None):
        self._units = -(-lanes // 2) if units is None else units
        check_units(self._units, lanes)
        self._lanes = lanes
        self._terms = ExactTerms(meta_shape, split=True, lanes=lanes, units=self._units)
        super().__init__({
            "sums": In(stream.Signature(exact_sum_layout(meta_shape, lanes))).array(2),
            "rounded": In(1),
            "terms": Out(stream.Signature(exact_term_layout(meta_shape, lanes))).array(2),
            "quiet": Out(2), "idle": Out(1)})

    def join(self, m: Module, reducers: Sequence[GradientReducer]) -> None:
        """Connect to the local and the global reducer in ``reducers``, which have no units."""
        for number, reducer in enumerate(reducers):
            wiring.connect(m, reducer.sums, self.sums[number])
            wiring.connect(m, self.terms[number], reducer.terms)
            m.d.comb += reducer.quiet.eq(self.quiet[number])
        m.d.comb += self.rounded.eq(reducers[0].rounded)

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.terms = terms = self._terms
        turns = self._lanes // self._units
        part, side, parts = Signal(range(turns)), Signal(), terms.sums.payload
        offered = Cat(port.valid for port in self.sums)
        mine, final, resting = Signal(), Signal(), Signal()
        m.d.comb += [
            mine.eq(offered.bit_select(side, 1)), final.eq(part == turns - 1),
            terms.sums.valid.eq(mine), terms.rounded.eq(side | self.rounded),
            resting.eq(terms.idle), self.idle.eq(resting & ~offered.any()),
        ]
        # After the first part of a sum, the other parts are taken in the next cycles.
        next_part, next_side = Signal.like(part), Signal()
        m.d.comb += [
            next_part.eq(part), next_side.eq(side ^ (resting & ~mine & offered.any())),
            parts.meta.eq(Mux(side, self.sums[1].payload.meta, self.sums[0].payload.meta)),
        ]
        with m.If(mine & (terms.sums.ready | (part != 0))):
            m.d.comb += next_part.eq(Mux(final, 0, part + 1))
        m.d.sync += [part.eq(next_part), side.eq(next_side)]
        for unit in range(self._units):
            choice = Shared(_LaneChoice(turns), f"lane_choice{turns}")
            m.submodules[f"choice{unit}"] = choice
            m.d.comb += [choice.choice.eq(Cat(next_part, next_side)),
                         parts.lanes[unit].eq(choice.o)]
            for turn in range(turns):
                for number, port in enumerate(self.sums):
                    m.d.comb += getattr(choice, f"i{number * turns + turn}").eq(
                        port.payload.lanes[turn * self._units + unit])
        for number, (sums, given) in enumerate(zip(self.sums, self.terms)):
            here = side == number
            m.d.comb += [
                sums.ready.eq(here & (final if turns > 1 else terms.sums.ready)),
                given.valid.eq(terms.o.valid & here), given.payload.eq(terms.o.payload),
                self.quiet[number].eq(~sums.valid & (~here | resting)),
            ]
        m.d.comb += terms.o.ready.eq(Mux(side, self.terms[1].ready, self.terms[0].ready))
        return m


class _LaneChoice(wiring.Component):
    """Select the sum of one of ``parts`` lanes of either side.

    The registers of the choice are in this block, once per unit: registers for the lanes of all
    units would drive thousands of loads. With half the lanes in units, a choice of four is one LUT
    per bit, like a choice of two.

    Ports
    -----
    i0 and so on: the parts of the first side, then of the second.
    choice: number of the part in the next cycle.
    o: the selected part.
    """

    def __init__(self, parts: int):
        self._parts = parts
        super().__init__({
            **{f"i{number}": In(EXACT) for number in range(2 * parts)},
            "choice": In(range(2 * parts)), "o": Out(EXACT)})

    def elaborate(self, platform) -> Module:
        m = Module()
        choice = Signal.like(self.choice)
        m.d.sync += choice.eq(self.choice)
        inputs = Array(getattr(self, f"i{number}").as_value() for number in range(2 * self._parts))
        m.d.comb += self.o.eq(inputs[choice])
        return m

