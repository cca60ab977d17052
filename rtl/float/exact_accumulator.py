"""Exact accumulator: adds float32 vectors by entry, and outputs the sums."""

from amaranth.hdl import Module, ShapeLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.config import LANES
from rtl.float.exact import exact_term_layout
from rtl.float.exact_table import ExactTable, exact_operation_layout
from rtl.float.exact_terms import ExactTerms

__all__ = ["ExactAccumulator"]


class ExactAccumulator(wiring.Component):
    """Combine a table of exact sums and the converter of its sums to beats (paper, 4.2.1 and
    4.2.2).

    Local reduction splits: the exact sum of its beats equals the sum of its terms, so the owner's
    sum does not depend on which node reduced which gradient. Global reduction rounds once.

    Parameters and port ``i``: see :class:`~rtl.float.exact_table.ExactTable`. ``split``, ``units``
    and port ``o``: see :class:`~rtl.float.exact_terms.ExactTerms`. ``idle``: inactive until an
    input changes.
    """

    LATENCY = {
        ("taking operation", "its first beat"): 11,
        ("taking operation behind a term", "its first beat"): 21,
    }
    RATE = "1 term per cycle, and 1 beat per cycle with a unit for each lane"

    def __init__(self, entries: int, meta_shape: ShapeLike, *, split: bool, style: str = "bram",
                 lanes: int = LANES, units: int | None = None):
        self._table = ExactTable(entries, meta_shape, style=style, lanes=lanes, units=units)
        self._terms = ExactTerms(meta_shape, split=split, lanes=lanes, units=units)
        super().__init__({
            "i": In(stream.Signature(exact_operation_layout(entries, meta_shape, lanes))),
            "o": Out(stream.Signature(exact_term_layout(meta_shape, lanes))), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.table, m.submodules.terms = table, terms = self._table, self._terms
        wiring.connect(m, wiring.flipped(self.i), table.i)
        wiring.connect(m, table.sums, terms.sums)
        wiring.connect(m, terms.o, wiring.flipped(self.o))
        m.d.comb += self.idle.eq(table.idle & terms.idle)
        return m
