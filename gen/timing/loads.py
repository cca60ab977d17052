"""Loads of nets by kind, control sets, and depth in LUTs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gen.timing.cells import KINDS
from gen.timing.graph import Graph
from gen.timing.levels import Levels

__all__ = ["ControlSet", "NetLoads", "control_sets", "loads_by_kind", "lut_depths", "most_loaded"]


class NetLoads(NamedTuple):
    """Path of a net, its number of loads, and the number of loads of each kind."""

    name: str
    total: int
    kinds: dict[str, int]


class ControlSet(NamedTuple):
    """Flip-flops with the same clock, enable and reset. These are paths of nets, constants, or ""
    for a missing pin. Each half of a slice can contain flip-flops of one control set only."""

    clock: str
    enable: str
    reset: str
    flip_flops: int


def loads_by_kind(graph: Graph) -> NDArray[np.int64]:
    """Return the loads of each net as an array of nets x ``KINDS``, without clocks. An input of a
    LUT, carry or multiplexer is data."""
    loads = graph.loads
    cells = loads.nets.astype(np.int64) * len(KINDS) + loads.kinds
    counts = np.bincount(cells, loads.counts, graph.count * len(KINDS))
    return counts.astype(np.int64).reshape(graph.count, len(KINDS))


def most_loaded(graph: Graph, count: int, kind: str = "") -> list[NetLoads]:
    """Return the ``count`` nets with most loads, without constants. ``kind``: count only loads of
    this kind of :data:`gen.timing.cells.KINDS`."""
    loads = loads_by_kind(graph)
    counted = loads[:, KINDS.index(kind)] if kind else loads.sum(axis=1)
    counted = np.where(graph.constant, 0, counted)
    nets = np.argsort(-counted, kind="stable")[:count]
    return [NetLoads(graph.net_name(int(net)), int(loads[net].sum()),
                     {kind: int(n) for kind, n in zip(KINDS, loads[net]) if n})
            for net in nets if counted[net]]


def control_sets(graph: Graph) -> list[ControlSet]:
    """Return the control sets of the design, the largest first."""
    cells = np.flatnonzero(graph.kinds_of(np.arange(len(graph.clocks), dtype=np.int32)) == "ff")
    pins = [graph.clocks]
    for kind in ("enable", "reset"):
        of_kind = graph.loads.kinds == KINDS.index(kind)
        nets = np.full(len(graph.clocks), -1, np.int32)
        nets[graph.loads.cells[of_kind]] = graph.loads.nets[of_kind]
        pins.append(nets)
    sets, counts = np.unique(np.stack(pins)[:, cells], axis=1, return_counts=True)
    return [ControlSet(*("" if net < 0 else graph.net_name(int(net)) for net in sets[:, place]),
                       int(counts[place]))
            for place in np.argsort(-counts, kind="stable")]


def lut_depths(levels: Levels) -> NDArray[np.int32]:
    """Return the largest number of LUTs on a path to each net."""
    depths = np.zeros(levels.graph.count, np.int32)
    for level in levels.levels:
        arcs = slice(level.first, level.last)
        through = depths[levels.sources[arcs]] + levels.arcs.lut[arcs]
        depths[level.targets] = np.maximum.reduceat(through, level.starts)
    return depths
