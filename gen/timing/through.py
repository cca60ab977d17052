"""Worst path through each net and each block, in the whole design."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gen.timing.graph import Graph
from gen.timing.propagate import Arrivals, required

__all__ = ["BlockPath", "blocks_of_cells", "worst_by_block"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class BlockPath(NamedTuple):
    """The worst path through a block: its delay in ps, and the cells at its start and end."""

    ps: float
    first: int
    last: int


def blocks_of_cells(graph: Graph) -> tuple[tuple[str, ...], Ints]:
    """Return the units in the design, and for each cell the index of its unit."""
    units = tuple(dict.fromkeys(place.unit for place in graph.places))
    number = {unit: place for place, unit in enumerate(units)}
    of_place = np.array([number[place.unit] for place in graph.places], np.int64)
    first = np.array([place.first_cell for place in graph.places], np.int64)
    cells = np.arange(len(graph.clocks))
    return units, of_place[np.maximum(0, np.searchsorted(first, cells, "right") - 1)]


def worst_by_block(arrived: Arrivals) -> dict[str, BlockPath]:
    """Return the worst path through each unit, over all its instances.

    A path through several units counts for each of them. Units without a path are omitted.
    """
    graph = arrived.graph
    units, blocks = blocks_of_cells(graph)
    tails = -required(arrived, 0.0)
    driven = np.flatnonzero(graph.drivers >= 0)
    ends, insides = graph.captures.cells[arrived.captures], graph.inner.cells[arrived.insides]
    # Candidates of a block: nets that it drives, ends in it, paths inside its cells.
    delays = np.concatenate([(arrived.nets + tails)[driven], arrived.ends, arrived.inner])
    owners = blocks[np.concatenate([graph.drivers[driven], ends, insides])]
    order = np.lexsort((np.arange(len(delays)), -delays, owners))
    chosen = order[np.flatnonzero(np.diff(owners[order], prepend=-1))]
    onwards = _Onwards(arrived, tails)
    found = {}
    for candidate in chosen[delays[chosen] > -np.inf]:
        place = int(candidate)
        if place < len(driven):
            net = int(driven[place])
            first, last = arrived.starts[net], onwards.end(net)
            cells = graph.launches.cells[first], last
        elif (place := place - len(driven)) < len(ends):
            cells = graph.launches.cells[arrived.end_starts[place]], ends[place]
        else:
            cells = (insides[place - len(ends)],) * 2
        found[units[owners[candidate]]] = BlockPath(
            float(delays[candidate]), int(cells[0]), int(cells[1]))
    return found


class _Onwards:
    """Search for the end of the worst path from a net. ``tails``: delay of each net to its end."""

    def __init__(self, arrived: Arrivals, tails: Floats):
        graph, levels = arrived.graph, arrived.levels
        self._targets, self._tails = levels.arcs.targets, tails
        self._behind = (arrived.wires[levels.arcs.loads] + arrived.arcs
                        + tails[levels.arcs.targets])
        self._arcs = _grouped(levels.sources, graph.count)
        nets = graph.loads.nets[graph.captures.places[arrived.captures]]
        with np.errstate(invalid="ignore"):  # without an arrival
            self._setups = arrived.ends - arrived.nets[nets]
        self._ends = _grouped(nets, graph.count)
        self._cells = graph.captures.cells[arrived.captures]

    def end(self, net: int) -> int:
        """Return the cell at the end of the worst path through ``net``."""
        while True:
            ends, arcs = self._members(self._ends, net), self._members(self._arcs, net)
            setup = self._setups[ends].max(initial=-np.inf)
            if not len(arcs) or setup >= self._behind[arcs].max():
                return int(self._cells[ends[self._setups[ends].argmax()]])
            net = int(self._targets[arcs[self._behind[arcs].argmax()]])

    @staticmethod
    def _members(groups: tuple[Ints, Ints], net: int) -> Ints:
        order, first = groups
        return order[first[net]:first[net + 1]]


def _grouped(nets: NDArray[np.integer], count: int) -> tuple[Ints, Ints]:
    """Return the indices into ``nets`` sorted by net, and the begin of each net's group."""
    order = np.argsort(nets, kind="stable")
    return order, np.searchsorted(nets[order], np.arange(count + 1))
