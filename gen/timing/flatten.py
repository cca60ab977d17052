"""Joins the units of a design to a graph."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gen.timing.cell_types import CellType, Paths, TimingOf
from gen.timing.cells import Capture, CellTiming, Launch, Pin, timing_of
from gen.timing.graph import Arcs, Ends, Graph, Loads
from gen.timing.hierarchy import places_of
from gen.timing.netlist import CONSTANTS, Unit
from gen.timing.wires import dedicated_wires

__all__ = ["flat"]


def flat(units: Mapping[str, Unit], top: str, timing_of: TimingOf = timing_of) -> Graph:
    """Return the design with top ``top`` as a graph.

    A port of the top is a cell of kind ``port``. The analysis assumes a register of the neighbour
    behind it: an input arrives with that register's clock-to-output delay, and an output must meet
    its setup. The wire between them is the net of the port. ``timing_of`` returns the register's
    timing, that of ``FDRE``.

    Raises ``ValueError`` with the name of a net that two cells drive.
    """
    ports = _ports(units[top], timing_of("FDRE", {}, {"C": 1, "D": 1, "Q": 1}))
    places, count = places_of(units, top, len(ports))
    groups = [_Group(type_, number, places[0].nets[nets][np.newaxis])
              for number, (type_, nets) in enumerate(ports.values())]
    for place in places:
        first = place.first_cell
        for cells in units[place.unit].cells:
            groups.append(_Group(cells.type, first, place.nets[cells.nets]))
            first += len(cells.names)
    types = tuple(dict.fromkeys(group.type for group in groups))
    constant = np.zeros(count, bool)
    constant[places[0].nets[:len(CONSTANTS)]] = True
    drivers, driver_pins, twice = _drivers(groups, constant)
    parts, first = [], 0
    for group in groups:
        parts.append(_paths(group, first))
        first += len(group.nets) * len(group.type.inputs)
    loads, arcs, launches, captures, inner = map(_joined, zip(*parts))
    clocks = _join([group.clocks() for group in groups])
    # A path neither ends at a clock nor begins at a constant.
    silent = constant.copy()
    silent[clocks[clocks >= 0]] = True
    fan_out = np.bincount(loads.nets, loads.counts, count).astype(np.int32)
    cell_types = _cell_types(groups, types)
    wires = dedicated_wires(
        types, cell_types, (drivers[loads.nets], driver_pins[loads.nets]),
        (loads.cells, loads.pins), fan_out[loads.nets])
    graph = Graph(
        units, top, constant, fan_out, drivers, driver_pins, loads, wires,
        _kept(arcs, ~constant[loads.nets[arcs.loads]] & ~constant[arcs.targets]),
        _kept(launches, ~silent[launches.places]),
        _kept(captures, ~constant[loads.nets[captures.places]]), inner,
        types, cell_types, clocks, places,
        {name: number for number, name in enumerate(ports)})
    if len(twice):
        raise ValueError(f"net {graph.net_name(int(twice[0]))} must have one driver")
    return graph


class _Group(NamedTuple):
    """Cells of one type in an instance, numbered from ``first``.

    ``nets`` contains the nets of their pins, as an array of cells x pins.
    """

    type: CellType
    first: int
    nets: NDArray[np.int32]

    def cells(self) -> NDArray[np.int32]:
        return np.arange(self.first, self.first + len(self.nets), dtype=np.int32)

    def clocks(self) -> NDArray[np.int32]:
        if self.type.clock < 0:
            return np.full(len(self.nets), -1, np.int32)
        return self.nets[:, self.type.clock]


def _ports(unit: Unit, register: CellTiming) -> dict[str, tuple[CellType, NDArray[np.int32]]]:
    """Return the type and the nets of each port's cell."""
    launch_ps = max(launch.ps for launch in register.launches)
    setup_ps = next(capture.ps for capture in register.captures if capture.kind == "data")
    found = {}
    for name, (direction, nets) in unit.ports.items():
        pins = [Pin(name, bit) for bit in range(len(nets))]
        if direction == "input":
            timing = CellTiming("port", launches=tuple(Launch(pin, launch_ps) for pin in pins))
        else:
            timing = CellTiming("port", captures=tuple(
                Capture(pin, setup_ps, "data") for pin in pins))
        found[name] = CellType.of("port", timing, [(name, len(nets), direction == "input")]), nets
    return found


def _drivers(groups: list[_Group], constant: NDArray[np.bool_]) -> tuple[NDArray, NDArray, NDArray]:
    """Return the cell and the pin that drive each net, and the nets with several drivers."""
    drivers, pins = (np.full(len(constant), -1, np.int32) for _ in range(2))
    driven = np.zeros(len(constant), np.int32)
    for group in groups:
        outputs = group.type.outputs
        nets = group.nets[:, outputs]
        drivers[nets] = group.cells()[:, np.newaxis]
        pins[nets] = outputs
        np.add.at(driven, nets, 1)
    drivers[constant] = -1  # an unconnected output appears as a driver of a constant
    return drivers, pins, np.flatnonzero((driven > 1) & ~constant)


def _paths(group: _Group, first_load: int) -> tuple[Loads, Arcs, Ends, Ends, Ends]:
    """Return the records of ``group`` for the graph; the numbers of its loads begin with
    ``first_load``."""
    type_, nets, cells = group.type, group.nets, group.cells()
    rows, inputs = len(nets), len(type_.inputs)
    loads = first_load + np.arange(rows * inputs, dtype=np.int32).reshape(rows, inputs)

    def each(values: NDArray) -> NDArray:
        return np.tile(values, rows)

    def ends(paths: Paths, places: NDArray) -> Ends:
        kinds = paths.kinds if len(paths.kinds) else np.full(len(paths.ps), -1, np.int32)
        return Ends(places.ravel(), np.repeat(cells, len(paths.ps)), each(paths.ps),
                    each(paths.nets), each(kinds))

    through = type_.arcs
    return (
        Loads(nets[:, type_.inputs].ravel(), np.repeat(cells, inputs), each(type_.inputs),
              each(type_.load_kinds), each(type_.load_counts)),
        Arcs(loads[:, through.sources].ravel(), nets[:, through.pins].ravel(), each(through.ps),
             each(through.nets), np.full(rows * len(through.ps), type_.kind == "lut")),
        ends(type_.launches, nets[:, type_.launches.pins]),
        ends(type_.captures, loads[:, type_.captures.sources]),
        ends(type_.inner, np.full(rows * len(type_.inner.ps), -1, np.int32)))


def _cell_types(groups: list[_Group], types: tuple[CellType, ...]) -> NDArray[np.int32]:
    number = {type_: place for place, type_ in enumerate(types)}
    return _join([np.full(len(group.nets), number[group.type], np.int32) for group in groups])


def _joined(parts: tuple) -> Any:
    """Concatenate the records ``parts``, which are all of one kind."""
    return type(parts[0])(*(_join(arrays) for arrays in zip(*parts)))


def _join(arrays: Iterable[NDArray]) -> NDArray:
    return np.concatenate([np.empty(0, np.int32), *arrays])


def _kept(record: Any, kept: NDArray[np.bool_]) -> Any:
    return type(record)(*(array[kept] for array in record))
