"""Connections that have wires of their own: in a slice, along a carry chain, in a cascade."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gen.timing.cell_types import CellType
from gen.timing.nets import dedicated

__all__ = ["dedicated_wires"]

Ints = NDArray[np.int32]


def dedicated_wires(types: Sequence[CellType], cell_types: Ints, drivers: tuple[Ints, Ints],
                    loads: tuple[Ints, Ints], fan_out: Ints) -> NDArray[np.float64]:
    """Return the delay of each load's own wire in ps, nan if it has none (:func:`dedicated`).

    ``drivers`` and ``loads`` are a cell (-1 for none) and the number of its pin for each load;
    ``fan_out`` is that of the load's net.
    """
    # What the rule knows of a pin is the kind of its cell and its port.
    ports: dict[tuple[str, str], int] = {("", ""): 0}
    numbers = [[ports.setdefault((type_.kind, pin.port), len(ports)) for pin in type_.pins]
               for type_ in types]
    first = np.cumsum([0, *map(len, numbers)])
    flat = np.array([number for own in numbers for number in own], np.int64)

    def port_of(cells: Ints, pins: Ints) -> NDArray[np.int64]:
        return flat[first[cell_types[cells]] + pins]

    if not len(fan_out):
        return np.empty(0)
    count = len(ports)
    driven = np.zeros(len(fan_out), np.int64)
    has_driver = drivers[0] >= 0
    driven[has_driver] = port_of(drivers[0][has_driver], drivers[1][has_driver])
    keys = (driven * count + port_of(*loads)) * 2 + (fan_out == 1)
    names = list(ports)
    table = np.full(2 * count * count, np.nan)
    for key in np.flatnonzero(np.bincount(keys)):
        pair, alone = divmod(int(key), 2)
        source, sink = names[pair // count], names[pair % count]
        # The rule asks only whether the load is alone.
        ps = dedicated(*source, *sink, 1 if alone else 2)
        table[key] = np.nan if ps is None else ps
    return table[keys]
