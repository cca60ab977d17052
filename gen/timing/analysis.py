"""A converted design as a graph whose paths can be timed."""

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
    """What arrives in one case of nets: from registers at ``registers``, from ports at both, from
    registers at ports, and from registers at those of the same block without leaving it."""

    registers: Arrivals
    from_ports: Arrivals
    into_ports: Arrivals
    inside: Arrivals


@dataclass(frozen=True, eq=False)
class TimedDesign:
    """A mapped design.

    Members
    -------
    verilog: what it was converted to, with the places of declarations.
    units: names of the units of which it was mapped, inner ones first.
    graph: all of it. levels: the order of its nets.
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
        """Return what arrives in ``case``."""
        return Arrived(*(arrivals(levels, case, self.clock) for levels in (*(
            replace(self.levels, graph=part(self.graph))
            for part in (registers_only, from_ports, into_ports)), self._inside)))

    @cached_property
    def _inside(self) -> Levels:
        return levels_of(inside_blocks(registers_only(self.graph)))

    def declared(self, unit: str, signal: str) -> str:
        """Return the Verilog's name of the register that ``signal`` of ``unit`` is; "" if the
        source does not declare it as a register."""
        if unit not in self._registers:
            self._registers[unit] = registers(self.verilog, unit, list(self.units))
        return self._registers[unit].get(signal, "")

    def source(self, unit: str, signal: str) -> str:
        """Return file and line where ``signal`` of ``unit`` is declared, else those of its module;
        "" if unknown."""
        return source_of(self.verilog)(unit, signal)


def timed_design(verilog: Verilog, progress: Callable[[str], None] = lambda _line: None, *,
                 whole: bool = False, clock: str = "clk") -> TimedDesign:
    """Return ``verilog`` mapped by Yosys (:func:`gen.timing.design.mapped_units`) as one graph.

    ``whole`` treats the top as one unit, which is faster for a small design. ``clock`` is its port
    of the top. ``ValueError`` if no register uses it.
    """
    mapped = mapped_units(verilog, progress, whole=whole)
    progress(f"joining {len(mapped):,} netlists")
    graph = flat({name: unit.arrays for name, unit in mapped.items()}, verilog.name)
    return TimedDesign(verilog, tuple(mapped), graph, levels_of(graph), clock_of(graph, clock),
                       {name: unit.resources for name, unit in mapped.items()})
