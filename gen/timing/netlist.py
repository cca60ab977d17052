"""A mapped unit as arrays: its nets, its cells by type, and its subunits."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gen.netlist.netlists import Netlist
from gen.timing.cell_types import CellType, CellTypes
from gen.timing.cells import merge_carries

__all__ = ["CONSTANTS", "Cells", "Instance", "Unit", "read_unit"]

CONSTANTS = "01xz"
"""Constant nets, the first nets of every unit."""
_NO_CELL = "$scopeinfo"  # cell in which Yosys records a flattened module

Nets = NDArray[np.int32]


class Cells(NamedTuple):
    """Cells of one type in a unit: their ``names``, and their ``nets``, an array of cells x pins.
    """

    type: CellType
    names: tuple[str, ...]
    nets: Nets


class Instance(NamedTuple):
    """A subunit: its ``name``, its ``unit``, and the nets at its ports."""

    name: str
    unit: str
    ports: dict[str, Nets]


@dataclass(frozen=True, eq=False)
class Unit:
    """A mapped unit.

    Members
    -------
    ports: direction (``input``, ``output``) and nets of each port.
    count: number of nets; the first nets are :data:`CONSTANTS`.
    cells: cells by type. Cells are numbered in this order.
    instances: subunits.
    names: names of the signals.
    signals: for each net, the index of its signal in ``names``, or -1.
    bits: for each net, its bit of the signal; -1 for a signal of one bit.
    """

    ports: dict[str, tuple[str, Nets]]
    count: int
    cells: tuple[Cells, ...]
    instances: tuple[Instance, ...]
    names: tuple[str, ...]
    signals: Nets
    bits: Nets

    def cell(self, number: int) -> tuple[Cells, int]:
        """Return the group of cells that contains cell ``number``, and its row in the group."""
        for cells in self.cells:
            if number < len(cells.names):
                return cells, number
            number -= len(cells.names)
        raise IndexError(number)

    def signal(self, net: int) -> tuple[str, int]:
        """Return the signal of ``net`` and the bit, -1 for a signal of one bit; "" if unnamed."""
        if self.signals[net] < 0:
            return "", -1
        return self.names[self.signals[net]], int(self.bits[net])


def read_unit(netlist: Netlist, types: CellTypes, units: Container[str],
              registers: Container[str] = ()) -> Unit:
    """Return ``netlist`` as arrays.

    units: cell types that are units.
    registers: preferred names for nets with several names.

    Raises ``ValueError`` with the name of a cell type that has no timing.
    """
    rows: dict[CellType, tuple[list[str], list[list]]] = {}
    inner = []
    for name, cell in merge_carries(netlist["cells"]).items():
        kind = cell["type"]
        if kind in units:
            inner.append((name, kind, cell["connections"]))
        elif kind != _NO_CELL:
            names, nets = rows.setdefault(types.of(cell), ([], []))
            names.append(name)
            nets.append([bit for bits in cell["connections"].values() for bit in bits])
    renumber = _Renumber()
    cells = tuple(
        Cells(type_, tuple(names), renumber(nets).reshape(len(names), len(type_.pins)))
        for type_, (names, nets) in rows.items())
    instances = tuple(
        Instance(name, kind, {port: renumber(bits) for port, bits in connections.items()})
        for name, kind, connections in inner)
    ports = {port: (entry["direction"], renumber(entry["bits"]))
             for port, entry in netlist["ports"].items()}
    return Unit(ports, renumber.count, cells, instances,
                *_signals(netlist.get("netnames", {}), renumber, registers))


class _Renumber:
    """Numbering of nets from 0, the constants first."""

    def __init__(self):
        self.numbers: dict[int | str, int] = {value: k for k, value in enumerate(CONSTANTS)}

    @property
    def count(self) -> int:
        return len(self.numbers)

    def __call__(self, bits: list) -> Nets:
        flat = [bit for row in bits for bit in row] if bits and isinstance(bits[0], list) else bits
        numbers = self.numbers
        return np.array([numbers.setdefault(bit, len(numbers)) for bit in flat], np.int32)


def _signals(netnames: Mapping[str, Any], renumber: _Renumber,
             registers: Container[str]) -> tuple[tuple[str, ...], Nets, Nets]:
    # If a net has several names, the last one is kept.
    names = tuple(sorted(netnames, key=lambda name: (name in registers, "$" not in name, name)))
    signals, bits = (np.full(renumber.count, -1, np.int32) for _ in range(2))
    for place, name in enumerate(names):
        own = netnames[name]["bits"]
        for bit, net in enumerate(own):
            number = renumber.numbers.get(net, 0)
            if number >= len(CONSTANTS):
                signals[number], bits[number] = place, bit if len(own) > 1 else -1
    return names, signals, bits
