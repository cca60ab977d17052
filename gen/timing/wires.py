"""Dedicated wires: in a slice, along a carry chain, in a cascade."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gen.timing.cell_types import CellType
from gen.timing.nets import dedicated

__all__ = ["dedicated_wires"]

Ints = NDArray[np.int32]


def dedicated_wires(types: Sequence[CellType], cell_types: Ints, drivers: tuple[Ints, Ints],
                    loads: tuple[Ints, Ints], fan_out: Ints) -> NDArray[np.float64]:
    """Return the delay in ps of each load's dedicated wire, or nan (:func:`dedicated`).

    Parameters
    ----------
    drivers, loads: cell (-1 without) and pin number, for each load.
    fan_out: for each load, the fan-out of its net.
    """
    # The rule depends on the kind of a pin's cell and on its port.
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
        # The rule depends only on whether the net has one load.
        ps = dedicated(*source, *sink, 1 if alone else 2)
        table[key] = np.nan if ps is None else ps
    return table[keys]
