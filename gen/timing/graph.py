"""Whole design as a flat graph of nets: units joined across the hierarchy.

A net is a node. An arc leads from a net, through a load and its cell, to the net that the cell
drives. Its delay is the wire to the load plus the cell. A net's fan-out counts its loads in all
units of the design.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gen.timing.cell_types import CellType
from gen.timing.hierarchy import Place
from gen.timing.netlist import CONSTANTS, Unit

__all__ = ["Arcs", "Ends", "Graph", "Loads"]

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


class Loads(NamedTuple):
    """Input pins, without clocks.

    Members
    -------
    nets: net that the pin loads.
    cells: cell of the pin.
    pins: number of the pin among the cell's pins.
    kinds: index into ``KINDS``.
    counts: number of pins of primitives behind it.
    """

    nets: Ints
    cells: Ints
    pins: Ints
    kinds: Ints
    counts: Ints


class Arcs(NamedTuple):
    """Arcs through cells.

    Members
    -------
    loads: load where the arc begins.
    targets: net where the arc ends.
    ps: delay in the cell.
    nets: number of nets of fan-out 1 in the cell.
    lut: whether the arc passes a LUT, whose pin delay is added by :mod:`gen.timing.propagate`.
    """

    loads: Ints
    targets: Ints
    ps: Floats
    nets: Ints
    lut: NDArray[np.bool_]


class Ends(NamedTuple):
    """Starts of paths, ends of paths, or paths inside cells.

    Members
    -------
    places: a net for a start, a load for an end, -1 for a path inside a cell.
    cells: cell.
    ps: clock-to-output, setup, or delay of the path.
    nets: number of nets of fan-out 1 inside the cell.
    kinds: kind of an end, or -1.
    """

    places: Ints
    cells: Ints
    ps: Floats
    nets: Ints
    kinds: Ints


@dataclass(frozen=True, eq=False)
class Graph:
    """A flat design.

    Members
    -------
    units, top: units of the design, and the name of its top.
    constant: for each net, whether it is constant. A constant net has no arrival.
    fan_out: for each net, the number of its loads in primitives, without clocks.
    drivers, driver_pins: for each net, the cell that drives it and the number of its pin, or -1.
    loads, arcs, launches, captures, inner: see :class:`Loads`, :class:`Arcs`, :class:`Ends`.
    wires: for each load, the delay of a dedicated wire; nan for a net of the fabric.
    types, cell_types: types of cells, and the index of each cell's type.
    clocks: for each cell, the net at its clock, or -1.
    places: instances, the top first.
    ports: cell of each port of the top; ports are the first cells.
    """

    units: Mapping[str, Unit]
    top: str
    constant: NDArray[np.bool_]
    fan_out: Ints
    drivers: Ints
    driver_pins: Ints
    loads: Loads
    wires: Floats
    arcs: Arcs
    launches: Ends
    captures: Ends
    inner: Ends
    types: tuple[CellType, ...]
    cell_types: Ints
    clocks: Ints
    places: tuple[Place, ...]
    ports: Mapping[str, int]

    @property
    def count(self) -> int:
        """Number of nets."""
        return len(self.constant)

    def type_of(self, cell: int) -> CellType:
        """Return the type of ``cell``."""
        return self.types[self.cell_types[cell]]

    def kinds_of(self, cells: Ints) -> NDArray[np.str_]:
        """Return the kind (``ff``, ``lut``, ``port`` ...) of each of ``cells``."""
        return self._kinds[self.cell_types[cells]]

    def place_of(self, cell: int) -> Place:
        """Return the instance that contains ``cell``; ports are in the top."""
        return self.places[max(0, np.searchsorted(self._first_cells, cell, "right") - 1)]

    def cell_name(self, cell: int) -> str:
        """Return the path of ``cell``, with Yosys's name, or the path of a port."""
        if cell in self._port_names:
            return self._port_names[cell]
        place = self.place_of(cell)
        cells, row = self.units[place.unit].cell(cell - place.first_cell)
        return ".".join((*place.path, cells.names[row]))

    def signal(self, net: int) -> tuple[Place, str, int]:
        """Return the signal of ``net``: the instance of its driver, its name there, and the bit.

        The bit is -1 for a signal of one bit. The name is "" if the net has no signal.
        """
        cell = int(self.drivers[net])
        if cell < 0:
            return self.places[0], self.constant_name(net), -1
        place, pin = self.place_of(cell), int(self.driver_pins[net])
        if cell in self._port_names:
            port = self.types[self.cell_types[cell]].pins
            return place, self._port_names[cell], port[pin].bit if len(port) > 1 else -1
        unit = self.units[place.unit]
        cells, row = unit.cell(cell - place.first_cell)
        return place, *unit.signal(int(cells.nets[row, pin]))

    def constant_name(self, net: int) -> str:
        """Return the value of a constant net; "" for another net."""
        found = np.flatnonzero(self.places[0].nets[:len(CONSTANTS)] == net)
        return CONSTANTS[found[0]] if len(found) else ""

    def net_name(self, net: int) -> str:
        """Return the path of ``net``'s signal with its bit, or else of its driving cell; the value
        of a constant."""
        place, name, bit = self.signal(net)
        if not name:
            return self.cell_name(int(self.drivers[net])) if self.drivers[net] >= 0 else "undriven"
        return ".".join((*place.path, name)) + (f"[{bit}]" if bit >= 0 else "")

    def register_name(self, cell: int) -> str:
        """Return the name of a path end in ``cell``: the first signal that it drives, without the
        bit, or else the cell."""
        type_ = self.type_of(cell)
        if type_.kind != "port" and len(type_.outputs):
            place = self.place_of(cell)
            unit = self.units[place.unit]
            cells, row = unit.cell(cell - place.first_cell)
            for net in cells.nets[row, type_.outputs]:
                if name := unit.signal(int(net))[0]:
                    return ".".join((*place.path, name))
        return self.cell_name(cell)

    @cached_property
    def _first_cells(self) -> NDArray[np.int64]:
        return np.array([place.first_cell for place in self.places])

    @cached_property
    def _port_names(self) -> dict[int, str]:
        return {cell: name for name, cell in self.ports.items()}

    @cached_property
    def _kinds(self) -> NDArray[np.str_]:
        return np.array([type_.kind for type_ in self.types], np.str_)
