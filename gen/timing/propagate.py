"""Arrival and required times of every net, in one case of nets.

The delay of a net depends on its fan-out only (:mod:`gen.timing.nets`), except for dedicated wires.
As in synthesis tools, the inputs of a LUT are assigned to its pins by arrival: the latest input
gets the fastest pin. :func:`arrivals` makes this assignment once.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gen.timing.cells import LUT_PINS
from gen.timing.graph import Ends, Graph
from gen.timing.levels import Levels, latest_of
from gen.timing.nets import Case

__all__ = ["Arrivals", "arrivals", "clock_of", "crossings", "required"]

Floats = NDArray[np.float64]
_FASTEST_FIRST = np.array(LUT_PINS[::-1], np.float64)


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Arrivals in one case of nets, for the registers of one clock; in ps.

    Members
    -------
    levels, case, clock: inputs of the computation.
    launches: indices into ``graph.launches`` for this clock. Ports belong to every clock.
    captures: indices into ``graph.captures`` for this clock, likewise.
    wires: for each load, the delay from its net's driver.
    arcs: for each arc of ``levels``, the delay in the cell.
    nets: for each net, the latest arrival at its driver; -inf without an arrival.
    starts: for each net, the index into ``graph.launches`` of its latest path's start; -1 without.
    through: for each net, the last arc in ``levels`` of its latest path; -1 at a start.
    ends: for each of ``captures``, the arrival at the end with the setup; -inf without an arrival.
    insides: indices into ``graph.inner`` of paths inside cells of this clock.
    inner: for each of ``insides``, the delay of the path.
    """

    levels: Levels
    case: Case
    clock: int
    launches: NDArray[np.int64]
    captures: NDArray[np.int64]
    wires: Floats
    arcs: Floats
    nets: Floats
    starts: NDArray[np.int64]
    through: NDArray[np.int64]
    ends: Floats
    insides: NDArray[np.int64]
    inner: Floats

    @property
    def graph(self) -> Graph:
        """The design."""
        return self.levels.graph

    @cached_property
    def end_starts(self) -> NDArray[np.int64]:
        """For each of ``captures``, the start of its latest path, as in ``starts``."""
        graph = self.graph
        return self.starts[graph.loads.nets[graph.captures.places[self.captures]]]

    def slacks(self, period: float) -> Floats:
        """Return the slack of each of ``captures`` at ``period`` ps; inf without an arrival."""
        return period - self.ends


def clock_of(graph: Graph, port: str) -> int:
    """Return the net of clock ``port`` of the top. Raises ``ValueError`` if no register uses it."""
    ports = graph.units[graph.top].ports
    if port in ports and len(ports[port][1]) == 1:
        net = int(graph.places[0].nets[ports[port][1][0]])
        if net in graph.clocks:
            return net
    raise ValueError(f"clock must be a port at a register's clock, not {port!r}")


def arrivals(levels: Levels, case: Case, clock: int) -> Arrivals:
    """Return the arrivals at nets and ends, from the registers of clock net ``clock``."""
    graph = levels.graph
    inner_net = float(case.delay(1))
    launches = _of_clock(graph, graph.launches, clock)
    captures = _of_clock(graph, graph.captures, clock)
    wires = _wires(graph, case)
    delays = levels.arcs.ps + levels.arcs.nets * inner_net
    nets = np.full(graph.count, -np.inf)
    starts, through = (np.full(graph.count, -1, np.int64) for _ in range(2))
    # The latest of several launches of a net is assigned last.
    launched = (graph.launches.ps + graph.launches.nets * inner_net)[launches]
    order = np.argsort(launched, kind="stable")
    driven = graph.launches.places[launches[order]]
    nets[driven], starts[driven] = launched[order], launches[order]
    for level in levels.levels:
        arcs = slice(level.first, level.last)
        sources = levels.sources[arcs]
        at_pins = nets[sources] + wires[levels.arcs.loads[arcs]]
        luts = slice(level.first, level.first + level.luts)
        delays[luts] += _lut_pins(at_pins[:level.luts], levels.arcs.targets[luts])
        arrived = at_pins + delays[arcs]
        latest, best = latest_of(arrived, level.starts)
        later = latest > nets[level.targets]
        targets, best = level.targets[later], best[later]
        nets[targets] = latest[later]
        starts[targets] = starts[sources[best]]
        through[targets] = level.first + best
    ends = graph.captures
    at_ends = (nets[graph.loads.nets[ends.places]] + wires[ends.places] + ends.ps
               + ends.nets * inner_net)
    insides = _of_clock(graph, graph.inner, clock)
    return Arrivals(
        levels, case, clock, launches, captures, wires, delays, nets, starts, through,
        at_ends[captures], insides,
        (graph.inner.ps + graph.inner.nets * inner_net)[insides])


def required(arrived: Arrivals, period: float) -> Floats:
    """Return the time in ps at which each net's driver must be stable; inf if the net reaches no
    end.

    A net's slack is this time minus its arrival.
    """
    levels, graph = arrived.levels, arrived.graph
    latest = np.full(graph.count, np.inf)
    places = graph.captures.places[arrived.captures]
    nets = graph.loads.nets[places]
    # The delay from the driver to the end is the end's arrival minus the net's.
    inner_net = float(arrived.case.delay(1))
    behind = (arrived.wires[places] + graph.captures.ps[arrived.captures]
              + graph.captures.nets[arrived.captures] * inner_net)
    np.minimum.at(latest, nets, period - behind)
    for level in reversed(levels.levels):
        arcs = slice(level.first, level.last)
        before = (latest[levels.arcs.targets[arcs]] - arrived.arcs[arcs]
                  - arrived.wires[levels.arcs.loads[arcs]])
        np.minimum.at(latest, levels.sources[arcs], before)
    return latest


def crossings(levels: Levels, clock: int) -> int:
    """Return the number of register ends of net ``clock`` with a path from another clock. Such
    paths have no arrival."""
    graph = levels.graph
    reached = np.zeros(graph.count, bool)
    own = graph.clocks[graph.launches.cells]
    reached[graph.launches.places[(own >= 0) & (own != clock)]] = True
    for level in levels.levels:
        if level.last > level.first:
            through = reached[levels.sources[level.first:level.last]]
            reached[level.targets] |= np.logical_or.reduceat(through, level.starts)
    ends = graph.captures
    of_clock = graph.clocks[ends.cells] == clock
    return int((reached[graph.loads.nets[ends.places]] & of_clock).sum())


def _of_clock(graph: Graph, ends: Ends, clock: int) -> NDArray[np.int64]:
    own = graph.clocks[ends.cells]
    return np.flatnonzero((own == clock) | (graph.kinds_of(ends.cells) == "port"))


def _wires(graph: Graph, case: Case) -> Floats:
    """Return the delay to each load from the driver of its net."""
    return np.where(np.isnan(graph.wires), case.delay(graph.fan_out)[graph.loads.nets],
                    graph.wires)


def _lut_pins(at_pins: Floats, targets: NDArray[np.int32]) -> Floats:
    """Return the pin delay of each LUT input. ``targets`` are the driven nets; inputs of one LUT
    are adjacent."""
    order = np.lexsort((-at_pins, targets))
    ordered = targets[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]][:len(ordered)]
    places = np.arange(len(ordered))
    rank = places - np.maximum.accumulate(np.where(first, places, 0))
    delays = np.empty(len(ordered))
    delays[order] = _FASTEST_FIRST[rank]
    return delays
