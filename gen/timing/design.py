"""Mapped units of a converted design, as arrays."""

from collections.abc import Callable
from typing import NamedTuple

from gen.netlist.netlists import Netlist, map_units, place, registers, units_of
from gen.netlist.report import resources_of
from gen.timing.cell_types import CellTypes
from gen.timing.cells import timing_of
from gen.timing.netlist import Unit, read_unit
from gen.timing.paths import Source
from gen.verilog.convert import Verilog

__all__ = ["MappedUnit", "mapped_units", "source_of"]


class MappedUnit(NamedTuple):
    """A unit as arrays, and its LUTs, flip-flops, memories and DSPs
    (:func:`gen.netlist.report.resources_of`)."""

    arrays: Unit
    resources: dict[str, float]


def mapped_units(verilog: Verilog, progress: Callable[[str], None] = lambda _line: None, *,
                 whole: bool = False) -> dict[str, MappedUnit]:
    """Return the units of ``verilog`` by name, inner units first. Yosys synthesises units that are
    not cached.

    whole: whether to treat the top as one unit, see :func:`gen.netlist.netlists.units_of`.

    Raises ``ValueError`` with the name of a cell type that has no timing.
    """
    units = units_of(verilog, whole)
    types = CellTypes(timing_of)

    def read(unit: str, netlist: Netlist) -> MappedUnit:
        return MappedUnit(
            read_unit(netlist, types, units, registers(verilog, unit, units)),
            resources_of(netlist))

    return map_units(verilog, units, read, progress)


def source_of(verilog: Verilog) -> Source:
    """Return a function that finds the declaration of a unit's signal, for
    :func:`gen.timing.paths.worst_paths`."""
    return lambda unit, signal: place(verilog, unit, signal)["source"]
