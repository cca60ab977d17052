"""The graph of a converted design, from its mapped netlists."""

from collections.abc import Callable

from gen.netlists import Netlist, map_units, place, registers, units_of
from gen.timing.cell_types import CellTypes
from gen.timing.cells import timing_of
from gen.timing.flatten import flat
from gen.timing.graph import Graph
from gen.timing.netlist import Unit, read_unit
from gen.timing.paths import Source
from gen.verilog import Verilog

__all__ = ["graph_of", "source_of"]


def graph_of(verilog: Verilog, progress: Callable[[str], None] = lambda _line: None, *,
             whole: bool = False) -> Graph:
    """Return the graph of ``verilog``; its units are synthesised unless their netlists are cached.

    ``whole`` treats the top as one unit, as in :func:`gen.netlists.units_of`. ``ValueError`` names
    a type of cell that has no timing.
    """
    units = units_of(verilog, whole)
    types = CellTypes(timing_of)

    def read(unit: str, netlist: Netlist) -> Unit:
        return read_unit(netlist, types, units, registers(verilog, unit, units))

    return flat(map_units(verilog, units, read, progress), verilog.name)


def source_of(verilog: Verilog) -> Source:
    """Return where a signal of a unit is declared, for :func:`gen.timing.paths.worst_paths`."""
    return lambda unit, signal: place(verilog, unit, signal)["source"]
