"""Paths inside a block, which depend only on its own logic."""

from dataclasses import replace

import numpy as np

from gen.timing.graph import Ends, Graph
from gen.timing.propagate import Arrivals
from gen.timing.through import blocks_of_cells

__all__ = ["inside_blocks", "worst_inside"]


def inside_blocks(graph: Graph) -> Graph:
    """Return ``graph`` with only the paths whose cells all belong to one unit, in any of its
    instances.

    Fan-out remains that of the whole design. Inputs of a LUT from other blocks are omitted, so the
    remaining inputs get the LUT's fastest pins.
    """
    _units, blocks = blocks_of_cells(graph)
    drivers = graph.drivers[graph.loads.nets]
    kept = (drivers >= 0) & (blocks[drivers] == blocks[graph.loads.cells])
    arcs, ends = kept[graph.arcs.loads], kept[graph.captures.places]
    return replace(
        graph, arcs=type(graph.arcs)(*(array[arcs] for array in graph.arcs)),
        captures=Ends(*(array[ends] for array in graph.captures)))


def worst_inside(arrived: Arrivals) -> dict[str, float]:
    """Return the delay in ps of the worst path of each unit, from arrivals in such a graph. Units
    without a path are omitted."""
    graph = arrived.graph
    units, blocks = blocks_of_cells(graph)
    worst = np.full(len(units), -np.inf)
    np.maximum.at(worst, blocks[graph.captures.cells[arrived.captures]], arrived.ends)
    np.maximum.at(worst, blocks[graph.inner.cells[arrived.insides]], arrived.inner)
    return {unit: float(ps) for unit, ps in zip(units, worst) if ps > -np.inf}
