"""Sums as float32, of which some are rounded once and some may not be."""

from amaranth.hdl import Module, ShapeLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES
from rtl.float import ExactTerms, exact_sum_layout, exact_term_layout
from rtl.stream import Arbiter

__all__ = ["TermMerge"]


class TermMerge(wiring.Component):
    """Round each entry's sums once, or, where ``meta`` says ``partial``, split them exactly.

    Two :class:`~rtl.float.ExactTerms` and an arbiter behind them: a rounding unit that splits gives
    the largest finite number for a sum beyond it, where the one that does not gives infinity.

    Latency 11 cycles, throughput one term per cycle.

    Parameters and ports: those of :class:`~rtl.float.ExactTerms`.
    """

    def __init__(self, meta_shape: ShapeLike, *, lanes: int = LANES):
        self._meta, self._lanes = meta_shape, lanes
        super().__init__({
            "sums": In(stream.Signature(exact_sum_layout(meta_shape, lanes))),
            "o": Out(stream.Signature(exact_term_layout(meta_shape, lanes))), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.merge = merge = Arbiter(exact_term_layout(self._meta, self._lanes), 2)
        wiring.connect(m, merge.o, wiring.flipped(self.o))
        partial, idle = self.sums.payload.meta.partial, merge.idle
        for number, (name, mine) in enumerate((("rounded", ~partial), ("exact", partial))):
            unit = ExactTerms(self._meta, split=name == "exact", lanes=self._lanes)
            m.submodules[name] = unit
            wiring.connect(m, unit.o, merge.i[number])
            m.d.comb += [
                unit.sums.payload.eq(self.sums.payload),
                unit.sums.valid.eq(self.sums.valid & mine),
            ]
            with m.If(mine):
                m.d.comb += self.sums.ready.eq(unit.sums.ready)
            idle = idle & unit.idle
        m.d.comb += self.idle.eq(idle)
        return m
