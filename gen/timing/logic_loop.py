"""Loops of logic without a register. They have no timing and are rejected."""

from typing import NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gen.timing.graph import Graph

__all__ = ["refuse_loop"]

_NAMED = 8


def refuse_loop(graph: Graph, sources: NDArray[np.int32], targets: NDArray[np.int32],
                among: NDArray[np.bool_]) -> NoReturn:
    """Raise ``ValueError`` with the cells of the smallest loop of logic. ``among`` contains the
    candidate nets; ``sources`` and ``targets`` are the ends of the arcs."""
    inside = among[sources] & among[targets]
    sources, targets = sources[inside], targets[inside]
    links = coo_array((np.ones(len(sources), bool), (sources, targets)), (graph.count,) * 2)
    _count, component = connected_components(links, directed=True, connection="strong")
    size = np.bincount(component)
    # A single net is a loop only if an arc leads from it to itself.
    looped = size > 1
    looped[component[sources[sources == targets]]] = True
    smallest = np.where(looped, size, graph.count + 1).argmin()
    cells = np.unique(graph.drivers[component == smallest])
    named = ", ".join(graph.cell_name(int(cell)) for cell in cells[:_NAMED])
    more = f" and {len(cells) - _NAMED} more" if len(cells) > _NAMED else ""
    raise ValueError(f"logic must have no loop without a register: {named}{more}")
