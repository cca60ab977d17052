"""A converted design as a graph whose paths can be timed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from gen.netlists import Netlist, map_units, place, registers, units_of
from gen.report import resources_of
from gen.timing.boundary import from_ports, into_ports, registers_only
from gen.timing.cell_types import CellTypes
from gen.timing.cells import timing_of
from gen.timing.flatten import flat
from gen.timing.graph import Graph
from gen.timing.levels import Levels, levels_of
from gen.timing.netlist import Unit, read_unit
from gen.timing.nets import Case
from gen.timing.propagate import Arrivals, arrivals, clock_of
from gen.verilog import Verilog

__all__ = ["Analysis", "Design", "design_of"]


@dataclass(frozen=True, eq=False)
class Analysis:
    """What arrives in one case of nets: from registers at ``registers``, from ports at both, and
    from registers at ports."""

    registers: Arrivals
    from_ports: Arrivals
    into_ports: Arrivals


@dataclass(frozen=True, eq=False)
class Design:
    """A mapped design.

    Members
    -------
    verilog: what it was converted to, with the places of declarations.
    units: names of the units of which it was mapped, inner ones first.
    graph: all of it. levels: the order of its nets.
    clock: net of the clock.
    resources: LUTs, flip-flops, memories and DSPs of each unit (:func:`gen.report.resources_of`).
    """

    verilog: Verilog
    units: tuple[str, ...]
    graph: Graph
    levels: Levels
    clock: int
    resources: Mapping[str, Mapping[str, float]]
    _registers: dict[str, set[str]] = field(default_factory=dict, repr=False)

    def at(self, case: Case) -> Analysis:
        """Return what arrives in ``case``."""
        return Analysis(*(
            arrivals(replace(self.levels, graph=part(self.graph)), case, self.clock)
            for part in (registers_only, from_ports, into_ports)))

    def declared(self, unit: str, signal: str) -> bool:
        """Return whether ``signal`` of ``unit`` is declared as a register."""
        if unit not in self._registers:
            self._registers[unit] = registers(self.verilog, unit, list(self.units))
        return signal in self._registers[unit]

    def source(self, unit: str, signal: str) -> str:
        """Return file and line where ``signal`` of ``unit`` is declared, else those of its module;
        "" if unknown."""
        return place(self.verilog, unit, signal)["source"]


def design_of(verilog: Verilog, progress: Callable[[str], None] = lambda _line: None, *,
              whole: bool = False, clock: str = "clk") -> Design:
    """Return ``verilog`` mapped by Yosys (:func:`gen.netlists.map_units`) as one graph.

    ``whole`` treats the top as one unit, which is faster for a small design. ``clock`` is its port
    of the top. ``ValueError`` if no register uses it.
    """
    units = units_of(verilog, whole)
    types = CellTypes(timing_of)

    def convert(unit: str, netlist: Netlist) -> tuple[Unit, dict[str, float]]:
        arrays = read_unit(netlist, types, units, registers(verilog, unit, units))
        return arrays, resources_of(netlist)

    mapped = map_units(verilog, units, convert, progress)
    progress(f"joining {len(units):,} netlists")
    graph = flat({name: unit for name, (unit, _used) in mapped.items()}, verilog.name)
    return Design(verilog, tuple(units), graph, levels_of(graph), clock_of(graph, clock),
                  {name: used for name, (_unit, used) in mapped.items()})
