"""One-cycle loops: registers whose next value depends on their own through logic.

No register can be put into such a loop without changing what the design does, so its delay bounds
the clock whatever is pipelined.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gen.timing.graph import Graph
from gen.timing.levels import Levels, latest_of
from gen.timing.paths import Path, Source, path_to
from gen.timing.propagate import Arrivals

__all__ = ["worst_loops"]

Ints = NDArray[np.int64]


def worst_loops(arrived: Arrivals, period: float, count: int,
                source: Source = lambda _unit, _signal: "") -> list[Path]:
    """Return the ``count`` slowest one-cycle loops, one a register, the slowest first.

    A register is the flip-flops that drive the bits of one signal; its loop is the slowest path
    from one of them to the data, enable or reset of one of them.
    """
    found: list[Path] = []
    for ends in _registers(arrived):
        # No loop is slower than the slowest path to its end, and these come slowest first.
        if len(found) >= count and found[count - 1].ps >= arrived.ends[ends].max():
            break
        own = _from_itself(arrived, ends)
        if len(own.ends) and (slowest := int(own.ends.argmax())) >= 0 and np.isfinite(
                own.ends[slowest]):
            found.append(path_to(own, slowest, period, source))
            found.sort(key=lambda path: -path.ps)
    return found[:count]


def _registers(arrived: Arrivals) -> Iterator[Ints]:
    """Yield the ends (places in ``arrived.ends``) of each register, that with the latest arrival
    first; those where nothing arrives are left out."""
    graph = arrived.graph
    cells = graph.captures.cells[arrived.captures]
    registers = _register_numbers(graph)[cells]
    reached = np.flatnonzero((registers >= 0) & np.isfinite(arrived.ends))
    order = reached[np.lexsort((-arrived.ends[reached], registers[reached]))]
    starts = np.flatnonzero(np.diff(registers[order], prepend=-1))
    groups = np.split(order, starts[1:]) if len(order) else []
    yield from sorted(groups, key=lambda ends: -arrived.ends[ends[0]])


def _register_numbers(graph: Graph) -> Ints:
    """Return for each cell a number of the register that it is a flip-flop of; -1 for others."""
    numbers = np.full(len(graph.clocks), -1, np.int64)
    next_number = 0
    for place in graph.places:
        unit = graph.units[place.unit]
        first = place.first_cell
        for cells in unit.cells:
            rows = len(cells.names)
            if cells.type.kind == "ff":
                signals = unit.signals[cells.nets[:, cells.type.outputs[0]]].astype(np.int64)
                # A flip-flop whose output has no name is a register of its own.
                alone = len(unit.names) + first - place.first_cell + np.arange(rows)
                numbers[first:first + rows] = next_number + np.where(signals < 0, alone, signals)
            first += rows
        next_number += len(unit.names) + first - place.first_cell
    return numbers


def _from_itself(arrived: Arrivals, ends: Ints) -> Arrivals:
    """Return what arrives at ``ends`` from the register that they belong to alone."""
    levels, graph = arrived.levels, arrived.graph
    captures = arrived.captures[ends]
    cells = np.unique(graph.captures.cells[captures])
    launches = arrived.launches[np.isin(graph.launches.cells[arrived.launches], cells)]
    end_nets = graph.loads.nets[graph.captures.places[captures]]
    nets = np.full(graph.count, -np.inf)
    through = np.full(graph.count, -1, np.int64)
    nets[graph.launches.places[launches]] = graph.launches.ps[launches]
    for arcs in _cone(levels, end_nets):
        targets = levels.arcs.targets[arcs]
        starts = np.flatnonzero(np.diff(targets, prepend=-1))
        latest, best = latest_of(
            nets[levels.sources[arcs]] + arrived.wires[levels.arcs.loads[arcs]]
            + arrived.arcs[arcs], starts)
        nets[targets[starts]] = latest
        through[targets[starts]] = arcs[best]
    behind = arrived.ends[ends] - arrived.nets[end_nets]
    return replace(arrived, captures=captures, nets=nets, through=through,
                   ends=nets[end_nets] + behind)


def _cone(levels: Levels, nets: NDArray[np.integer]) -> Iterator[Ints]:
    """Yield the arcs on paths to ``nets``, level by level."""
    seen = np.zeros(levels.graph.count, bool)
    found = [np.empty(0, np.int64)]
    frontier = np.unique(nets)
    while len(frontier):
        seen[frontier] = True
        spans = levels.spans[frontier]
        lengths = spans[:, 1] - spans[:, 0]
        before = np.cumsum(lengths) - lengths
        arcs = np.repeat(spans[:, 0] - before, lengths) + np.arange(lengths.sum())
        found.append(arcs)
        frontier = np.unique(levels.sources[arcs])
        frontier = frontier[~seen[frontier]]
    arcs = np.sort(np.concatenate(found))
    bounds = np.searchsorted(arcs, [level.first for level in levels.levels[1:]])
    yield from (part for part in np.split(arcs, bounds) if len(part))
