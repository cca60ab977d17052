"""Instances of a design, and the nets that they share."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gen.timing.netlist import CONSTANTS, Unit

__all__ = ["Place", "places_of"]

Ints = NDArray[np.int32]


class Place(NamedTuple):
    """An instance in the design.

    It has its ``path`` (names from the top on), its ``unit``, the number of its first cell, and the
    net of the design for each of its nets.
    """

    path: tuple[str, ...]
    unit: str
    first_cell: int
    nets: Ints


def places_of(units: Mapping[str, Unit], top: str, ports: int) -> tuple[tuple[Place, ...], int]:
    """Return the instances of a design, and the number of its nets after joining.

    Nets are joined across ports and buffers. ``ports`` is the number of the first cell that is not
    a port of the top.
    """
    found: list[tuple[tuple[str, ...], str, int, int]] = []
    joined: list[NDArray] = []
    next_net, next_cell = len(CONSTANTS), ports

    def visit(path: tuple[str, ...], name: str) -> int:
        nonlocal next_net, next_cell
        unit = units[name]
        offset = next_net
        found.append((path, name, next_cell, offset))
        next_net += unit.count - len(CONSTANTS)
        next_cell += sum(len(cells.names) for cells in unit.cells)
        joined.extend(_numbers(offset, pair) for pair in _buffers(unit))
        for instance in unit.instances:
            inner = visit((*path, instance.name), instance.unit)
            for port, (_direction, inside) in units[instance.unit].ports.items():
                outside = instance.ports.get(port, inside[:0])
                joined.append(np.stack([_numbers(offset, outside), _numbers(inner, inside)])
                              if len(outside) else np.empty((2, 0), np.int64))
        return offset

    visit((), top)
    pairs = np.concatenate([np.empty((2, 0), np.int64), *joined], axis=1)
    joins = coo_array((np.ones(pairs.shape[1], bool), (pairs[0], pairs[1])), (next_net, next_net))
    count, labels = connected_components(joins, directed=False)
    return tuple(
        Place(path, name, cell, labels[_numbers(
            offset, np.arange(units[name].count))])
        for path, name, cell, offset in found), count


def _buffers(unit: Unit) -> Iterator[NDArray[np.int32]]:
    """Yield the nets on both sides of each buffer."""
    for cells in unit.cells:
        for pins in cells.type.joins:
            pair = cells.nets[:, pins].T
            yield pair[:, pair[1] >= len(CONSTANTS)]  # an unconnected output is constant


def _numbers(offset: int, nets: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return an instance's nets as nets of the design, before joining; constants are shared."""
    return np.where(nets < len(CONSTANTS), nets, nets + (offset - len(CONSTANTS)))
