"""Parts of a design's paths: those between its registers, from its ports, and into its ports.

What stands behind a port is not in the design, so paths of ports are told apart from the others.
"""

from dataclasses import replace

from gen.timing.graph import Ends, Graph

__all__ = ["from_ports", "into_ports", "registers_only"]


def registers_only(graph: Graph) -> Graph:
    """Return ``graph`` with the paths between registers, memories and DSPs alone."""
    return replace(graph, launches=_ends(graph, graph.launches, ports=False),
                   captures=_ends(graph, graph.captures, ports=False))


def from_ports(graph: Graph) -> Graph:
    """Return ``graph`` with the paths that begin at a port of the top alone."""
    return replace(graph, launches=_ends(graph, graph.launches, ports=True),
                   inner=_none(graph.inner))


def into_ports(graph: Graph) -> Graph:
    """Return ``graph`` with the paths from registers to a port of the top alone."""
    return replace(graph, launches=_ends(graph, graph.launches, ports=False),
                   captures=_ends(graph, graph.captures, ports=True), inner=_none(graph.inner))


def _ends(graph: Graph, ends: Ends, *, ports: bool) -> Ends:
    kept = (graph.kinds_of(ends.cells) == "port") == ports
    return Ends(*(array[kept] for array in ends))


def _none(ends: Ends) -> Ends:
    return Ends(*(array[:0] for array in ends))
