"""Worst paths, cell by cell."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from gen.timing.cells import KINDS
from gen.timing.graph import Graph
from gen.timing.propagate import Arrivals

__all__ = ["Hop", "Path", "Source", "path_to", "register_of", "worst_paths"]

Source = Callable[[str, str], str]
"""Function that returns the file and line of a signal's declaration, from unit and signal; "" if
unknown."""


class Hop(NamedTuple):
    """A cell on a path, and its output net.

    Members
    -------
    cell, type: path of the cell with Yosys's name, and its type.
    entry, exit: pins where the path enters and leaves the cell; "" at the start and the end.
    cell_ps: delay in the cell: clock to output at the start, setup at the end.
    net_ps: delay of the net to the next hop; 0 at the end.
    fan_out: number of loads of the net; 0 at the end.
    signal, source: path of the net's signal, its file and line; at the end, of the register.
    """

    cell: str
    type: str
    entry: str
    exit: str
    cell_ps: float
    net_ps: float
    fan_out: int
    signal: str
    source: str


class Path(NamedTuple):
    """A path between registers, memories, DSPs or ports.

    Members
    -------
    ps: delay of the path with clock to output and setup, the sum over ``hops``.
    slack: period minus delay, in ps.
    start, end: names of both ends.
    start_kind, end_kind: kinds of the cells at both ends: ``ff``, ``lutram``, ``bram``, ``uram``,
        ``dsp``, ``shift``, ``port``.
    capture: function of the end's pin, one of :data:`gen.timing.cells.KINDS`; ``inner`` for a path
        inside a cell.
    luts: number of LUTs on the path.
    hops: cells in order; a path inside a cell has a single hop.
    """

    ps: float
    slack: float
    start: str
    end: str
    start_kind: str
    end_kind: str
    capture: str
    luts: int
    hops: tuple[Hop, ...]


def worst_paths(arrived: Arrivals, period: float, count: int, *, per_register: bool = False,
                source: Source = lambda _unit, _signal: "") -> list[Path]:
    """Return the ``count`` worst paths at ``period`` ps, worst first, at most one per end.

    An end is a pin. With ``per_register``, an end is all pins of one kind of a register. The result
    includes paths inside cells.
    """
    graph = arrived.graph
    delays = np.concatenate([arrived.ends, arrived.inner])
    found: list[Path] = []
    seen: set[tuple[str, str]] = set()
    for place in np.argsort(-delays, kind="stable"):
        if len(found) == count or delays[place] == -np.inf:
            break
        if per_register:
            end = _end(arrived, int(place))
            if end in seen:
                continue
            seen.add(end)
        if place < len(arrived.ends):
            found.append(path_to(arrived, int(place), period, source))
        else:
            found.append(_inside(graph, arrived, int(place) - len(arrived.ends), period, source))
    return found


def path_to(arrived: Arrivals, end: int, period: float,
            source: Source = lambda _unit, _signal: "") -> Path:
    """Return the worst path to ``end``, an index into ``arrived.ends`` with an arrival."""
    graph = arrived.graph
    capture = int(arrived.captures[end])
    load = int(graph.captures.places[capture])
    steps = list(_backwards(arrived, int(graph.loads.nets[load])))[::-1]
    loads = [load_in for load_in, _net, _ps in steps[1:]] + [load]
    hops = []
    for (load_in, net, ps), next_load in zip(steps, loads):
        cell = int(graph.drivers[net])
        hops.append(Hop(
            graph.cell_name(cell), graph.type_of(cell).name,
            _pin(graph, cell, int(graph.loads.pins[load_in])) if load_in >= 0 else "",
            _pin(graph, cell, int(graph.driver_pins[net])), ps, float(arrived.wires[next_load]),
            int(graph.fan_out[net]), graph.net_name(net), _declared(graph, net, source)))
    first, last = int(graph.drivers[steps[0][1]]), int(graph.captures.cells[capture])
    before = float(arrived.nets[steps[-1][1]]) + float(arrived.wires[load])
    name, declared = register_of(graph, last, source)
    ps = float(arrived.ends[end])
    hops.append(Hop(graph.cell_name(last), graph.type_of(last).name,
                    _pin(graph, last, int(graph.loads.pins[load])), "", ps - before, 0.0, 0, name,
                    declared))
    kinds = graph.kinds_of(np.array([first, last], np.int32))
    luts = sum(graph.type_of(int(graph.drivers[net])).kind == "lut" for _load, net, _ps in steps)
    return Path(ps, period - ps, graph.register_name(first), name, str(kinds[0]), str(kinds[1]),
                KINDS[graph.captures.kinds[capture]], luts, tuple(hops))


def _inside(graph: Graph, arrived: Arrivals, place: int, period: float, source: Source) -> Path:
    cell, ps = int(graph.inner.cells[arrived.insides[place]]), float(arrived.inner[place])
    name, declared = register_of(graph, cell, source)
    kind = graph.type_of(cell)
    hop = Hop(graph.cell_name(cell), kind.name, "", "", ps, 0.0, 0, name, declared)
    return Path(ps, period - ps, name, name, kind.kind, kind.kind, "inner", 0, (hop,))


def _backwards(arrived: Arrivals, net: int) -> Iterator[tuple[int, int, float]]:
    """Yield, from the end backwards, the load where the path enters the driver of a net (-1 at the
    start), the net, and the delay in the cell."""
    levels = arrived.levels
    while (arc := int(arrived.through[net])) >= 0:
        yield int(levels.arcs.loads[arc]), net, float(arrived.arcs[arc])
        net = int(levels.sources[arc])
    yield -1, net, float(arrived.nets[net])


def _end(arrived: Arrivals, place: int) -> tuple[str, str]:
    graph = arrived.graph
    if place >= len(arrived.ends):
        cell = graph.inner.cells[arrived.insides[place - len(arrived.ends)]]
        return graph.register_name(int(cell)), "inner"
    capture = arrived.captures[place]
    return (graph.register_name(int(graph.captures.cells[capture])),
            KINDS[graph.captures.kinds[capture]])


def _pin(graph: Graph, cell: int, number: int) -> str:
    pins = graph.type_of(cell).pins
    port, bit = pins[number]
    return f"{port}[{bit}]" if sum(pin.port == port for pin in pins) > 1 else port


def _declared(graph: Graph, net: int, source: Source) -> str:
    place, name, _bit = graph.signal(net)
    return source(place.unit, name)


def register_of(graph: Graph, cell: int, source: Source) -> tuple[str, str]:
    """Return the path of the register, memory or port that ``cell`` belongs to, and the place of
    its declaration."""
    place, name = graph.place_of(cell), graph.register_name(cell)
    prefix = "".join(f"{part}." for part in place.path)
    return name, source(place.unit, name.removeprefix(prefix))
