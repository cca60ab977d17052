"""One-cycle loops: registers whose next value depends on their own value.

A register in such a loop would change the function of the design. Pipelining cannot shorten the
loop, so its delay bounds the clock.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gen.timing.graph import Graph
from gen.timing.levels import latest_of
from gen.timing.paths import Path, Source, path_to
from gen.timing.propagate import Arrivals

__all__ = ["worst_loops"]

Ints = NDArray[np.int64]


def worst_loops(arrived: Arrivals, period: float, count: int,
                source: Source = lambda _unit, _signal: "") -> list[Path]:
    """Return the ``count`` slowest one-cycle loops, at most one per register, the slowest first.

    A register consists of the flip-flops of one signal. Its loop is the slowest path from one of
    its flip-flops to the data, enable or reset of another.
    """
    found: list[Path] = []
    alone = _Alone(arrived)
    for ends in _registers(arrived):
        # The slowest path to an end bounds its loop, and the ends are sorted by that path.
        if len(found) >= count and found[count - 1].ps >= arrived.ends[ends].max():
            break
        with alone.at(ends) as own:
            slowest = int(own.ends.argmax())
            if np.isfinite(own.ends[slowest]):
                found.append(path_to(own, slowest, period, source))
                found.sort(key=lambda path: -path.ps)
    return found[:count]


def _registers(arrived: Arrivals) -> Iterator[Ints]:
    """Yield the ends of each register, as indices into ``arrived.ends``, latest arrival first. Ends
    without an arrival are omitted."""
    graph = arrived.graph
    cells = graph.captures.cells[arrived.captures]
    registers = _register_numbers(graph)[cells]
    reached = np.flatnonzero((registers >= 0) & np.isfinite(arrived.ends))
    order = reached[np.lexsort((-arrived.ends[reached], registers[reached]))]
    starts = np.flatnonzero(np.diff(registers[order], prepend=-1))
    groups = np.split(order, starts[1:]) if len(order) else []
    yield from sorted(groups, key=lambda ends: -arrived.ends[ends[0]])


def _register_numbers(graph: Graph) -> Ints:
    """Return the number of each flip-flop cell's register; -1 for other cells."""
    numbers = np.full(len(graph.clocks), -1, np.int64)
    next_number = 0
    for place in graph.places:
        unit = graph.units[place.unit]
        first = place.first_cell
        for cells in unit.cells:
            rows = len(cells.names)
            if cells.type.kind == "ff":
                signals = unit.signals[cells.nets[:, cells.type.outputs[0]]].astype(np.int64)
                # A flip-flop without a named output is a separate register.
                alone = len(unit.names) + first - place.first_cell + np.arange(rows)
                numbers[first:first + rows] = next_number + np.where(signals < 0, alone, signals)
            first += rows
        next_number += len(unit.names) + first - place.first_cell
    return numbers


class _Alone:
    """Arrivals at the ends of a register, from that register only. The arrays cover all nets and
    are reused, because each register touches few nets."""

    def __init__(self, arrived: Arrivals):
        self._arrived, count = arrived, arrived.graph.count
        self._nets = np.full(count, -np.inf)
        self._through = np.full(count, -1, np.int64)
        self._seen = np.zeros(count, bool)
        cells = arrived.graph.launches.cells[arrived.launches]
        self._by_cell = np.argsort(cells, kind="stable")
        self._cells = cells[self._by_cell]

    @contextmanager
    def at(self, ends: Ints) -> Iterator[Arrivals]:
        """Compute the arrivals at ``ends`` from their own register. The result is valid inside
        ``with``."""
        arrived, graph, nets = self._arrived, self._arrived.graph, self._nets
        levels, captures = arrived.levels, arrived.captures[ends]
        end_nets = graph.loads.nets[graph.captures.places[captures]]
        launches = self._launches(np.unique(graph.captures.cells[captures]))
        touched = [graph.launches.places[launches].astype(np.int64)]
        nets[touched[0]] = graph.launches.ps[launches]
        for arcs in self._cone(end_nets):
            targets = levels.arcs.targets[arcs]
            starts = np.flatnonzero(np.diff(targets, prepend=-1))
            latest, best = latest_of(
                nets[levels.sources[arcs]] + arrived.wires[levels.arcs.loads[arcs]]
                + arrived.arcs[arcs], starts)
            reached = targets[starts]
            nets[reached], self._through[reached] = latest, arcs[best]
            touched.append(reached.astype(np.int64))
        behind = arrived.ends[ends] - arrived.nets[end_nets]
        try:
            yield replace(arrived, captures=captures, nets=nets, through=self._through,
                          ends=nets[end_nets] + behind)
        finally:
            for reached in touched:
                nets[reached], self._through[reached] = -np.inf, -1

    def _launches(self, cells: Ints) -> Ints:
        """Return the launches of ``cells``."""
        first, last = (np.searchsorted(self._cells, cells, side) for side in ("left", "right"))
        return self._arrived.launches[self._by_cell[_spread(first, last - first)]]

    def _cone(self, nets: NDArray[np.integer]) -> Iterator[Ints]:
        """Yield the arcs on paths to ``nets``, level by level."""
        levels, seen = self._arrived.levels, self._seen
        found = [np.empty(0, np.int64)]
        frontier, reached = np.unique(nets), []
        while len(frontier):
            seen[frontier] = True
            reached.append(frontier)
            spans = levels.spans[frontier]
            arcs = _spread(spans[:, 0], spans[:, 1] - spans[:, 0])
            found.append(arcs)
            frontier = np.unique(levels.sources[arcs])
            frontier = frontier[~seen[frontier]]
        for net in reached:
            seen[net] = False
        arcs = np.sort(np.concatenate(found))
        bounds = np.searchsorted(arcs, [level.first for level in levels.levels[1:]])
        yield from (part for part in np.split(arcs, bounds) if len(part))


def _spread(first: Ints, lengths: Ints) -> Ints:
    """Return ``lengths`` consecutive numbers from each of ``first``, concatenated."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(first - before, lengths) + np.arange(lengths.sum())
