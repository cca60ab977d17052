"""Parts of a design's graph: paths between registers, from ports, and to ports.

The logic behind a port is not in the design, so the report separates paths of ports.
"""

from dataclasses import replace

from gen.timing.graph import Ends, Graph

__all__ = ["from_ports", "into_ports", "registers_only"]


def registers_only(graph: Graph) -> Graph:
    """Return ``graph`` with only the paths between registers, memories and DSPs."""
    return replace(graph, launches=_ends(graph, graph.launches, ports=False),
                   captures=_ends(graph, graph.captures, ports=False))


def from_ports(graph: Graph) -> Graph:
    """Return ``graph`` with only the paths that begin at a port of the top."""
    return replace(graph, launches=_ends(graph, graph.launches, ports=True),
                   inner=_none(graph.inner))


def into_ports(graph: Graph) -> Graph:
    """Return ``graph`` with only the paths from registers to ports of the top."""
    return replace(graph, launches=_ends(graph, graph.launches, ports=False),
                   captures=_ends(graph, graph.captures, ports=True), inner=_none(graph.inner))


def _ends(graph: Graph, ends: Ends, *, ports: bool) -> Ends:
    kept = (graph.kinds_of(ends.cells) == "port") == ports
    return Ends(*(array[kept] for array in ends))


def _none(ends: Ends) -> Ends:
    return Ends(*(array[:0] for array in ends))
