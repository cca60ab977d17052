"""Nets on slow paths whose fan-out dominates their delay."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gen.timing.cells import KINDS
from gen.timing.graph import Graph
from gen.timing.loads import NetLoads, loads_by_kind
from gen.timing.nets import CASES
from gen.timing.propagate import Arrivals, required

__all__ = ["FAN_OUT_BOUND", "CostlyNet", "costly_nets"]

FAN_OUT_BOUND = min(int((case.base / case.slope) ** 2) for case in CASES if case.slope)
"""Number of loads at which a net's fan-out adds as much delay as its distance. It is the smallest
number over all cases: 600 = 40 sqrt(225), 350 = 20 sqrt(306)."""


class CostlyNet(NamedTuple):
    """A net with more than :data:`FAN_OUT_BOUND` loads on a path that is too slow.

    Members
    -------
    net: the net with its loads.
    driver: kind of the driving cell.
    register: path of the declared register that drives the net, or "".
    ps: delay of the worst path through the net.
    """

    net: NetLoads
    driver: str
    register: str
    ps: float


def costly_nets(arrived: Arrivals, period: float,
                declared: Callable[[str, str], str]) -> list[CostlyNet]:
    """Return the nets above the bound on paths of more than ``period`` ps, the net with most loads
    first.

    declared: function that returns the register's name in the Verilog for a unit and a signal; ""
        if the source declares no such register. Other names are wires behind the register, or names
        by Yosys.
    """
    graph = arrived.graph
    delays = arrived.nets - required(arrived, 0.0)
    found = np.flatnonzero((graph.fan_out > FAN_OUT_BOUND) & ~graph.constant & (delays > period))
    loads = loads_by_kind(graph)
    nets = []
    for net in found[np.argsort(-graph.fan_out[found], kind="stable")]:
        cell = int(graph.drivers[net])
        kind = graph.type_of(cell).kind
        kinds = {name: int(count) for name, count in zip(KINDS, loads[net]) if count}
        nets.append(CostlyNet(
            NetLoads(graph.net_name(int(net)), int(graph.fan_out[net]), kinds), kind,
            _register(graph, cell, declared) if kind == "ff" else "", float(delays[net])))
    return nets


def _register(graph: Graph, cell: int, declared: Callable[[str, str], str]) -> str:
    place, name = graph.place_of(cell), graph.register_name(cell)
    prefix = "".join(f"{part}." for part in place.path)
    own = declared(place.unit, name.removeprefix(prefix))
    return prefix + own if own else ""
