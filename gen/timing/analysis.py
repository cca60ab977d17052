"""A converted design as a graph for timing analysis."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from gen.netlist.netlists import registers
from gen.timing.boundary import from_ports, into_ports, registers_only
from gen.timing.design import mapped_units, source_of
from gen.timing.flatten import flat
from gen.timing.graph import Graph
from gen.timing.inside import inside_blocks
from gen.timing.levels import Levels, levels_of
from gen.timing.nets import Case
from gen.timing.propagate import Arrivals, arrivals, clock_of
from gen.verilog.convert import Verilog

__all__ = ["Arrived", "TimedDesign", "timed_design"]


@dataclass(frozen=True, eq=False)
class Arrived:
    """Arrivals in one case of nets.

    Members
    -------
    registers: from registers at registers.
    from_ports: from ports at registers and ports.
    into_ports: from registers at ports.
    inside: from registers at registers of the same block, on paths inside the block.
    """

    registers: Arrivals
    from_ports: Arrivals
    into_ports: Arrivals
    inside: Arrivals


@dataclass(frozen=True, eq=False)
class TimedDesign:
    """A mapped design.

    Members
    -------
    verilog: the converted design, with the places of declarations.
    units: names of the mapped units, inner units first.
    graph: graph of the whole design.
    levels: order of the nets.
    clock: net of the clock.
    resources: LUTs, flip-flops, memories and DSPs of each unit
        (:func:`gen.netlist.report.resources_of`).
    """

    verilog: Verilog
    units: tuple[str, ...]
    graph: Graph
    levels: Levels
    clock: int
    resources: Mapping[str, Mapping[str, float]]
    _registers: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)

    def at(self, case: Case) -> Arrived:
        """Return the arrivals in ``case``."""
        return Arrived(*(arrivals(levels, case, self.clock) for levels in (*(
            replace(self.levels, graph=part(self.graph))
            for part in (registers_only, from_ports, into_ports)), self._inside)))

    @cached_property
    def _inside(self) -> Levels:
        return levels_of(inside_blocks(registers_only(self.graph)))

    def declared(self, unit: str, signal: str) -> str:
        """Return the name of register ``signal`` of ``unit`` in the Verilog; "" if the source does
        not declare it as a register."""
        if unit not in self._registers:
            self._registers[unit] = registers(self.verilog, unit, list(self.units))
        return self._registers[unit].get(signal, "")

    def source(self, unit: str, signal: str) -> str:
        """Return the file and line of the declaration of ``signal`` of ``unit``, or else of its
        module; "" if unknown."""
        return source_of(self.verilog)(unit, signal)


def timed_design(verilog: Verilog, progress: Callable[[str], None] = lambda _line: None, *,
                 whole: bool = False, clock: str = "clk") -> TimedDesign:
    """Map ``verilog`` with Yosys and return it as a graph.

    whole: whether to treat the top as one unit, which is faster for a small design.
    clock: clock port of the top.

    Raises ``ValueError`` if no register uses ``clock``.
    """
    mapped = mapped_units(verilog, progress, whole=whole)
    progress(f"joining {len(mapped):,} netlists")
    graph = flat({name: unit.arrays for name, unit in mapped.items()}, verilog.name)
    return TimedDesign(verilog, tuple(mapped), graph, levels_of(graph), clock_of(graph, clock),
                       {name: unit.resources for name, unit in mapped.items()})
