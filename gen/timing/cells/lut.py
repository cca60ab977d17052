"""LUTs. Tools may swap the pins of a LUT: the latest input gets the fastest pin.

The arcs of a LUT therefore have 0 ps. :mod:`gen.timing.propagate` knows the arrivals and adds
:data:`LUT_PINS`: the i-th latest input gets the i-th fastest pin.
"""

from gen.timing.cells.model import Arc, CellTiming, Pin
from gen.timing.delays import DELAYS

__all__ = ["LUT_PINS", "lut", "lut_pin"]

LUT_PINS: tuple[int, ...] = tuple(DELAYS["lut"]["pins"])
"""Delay from pin to output in ps, slowest pin first."""


def lut(inputs: int) -> CellTiming:
    """Return the timing of LUT1 to LUT6, with inputs from ``I0`` and output ``O``."""
    return CellTiming("lut", tuple(Arc(Pin(f"I{n}"), Pin("O"), 0) for n in range(inputs)))


def lut_pin(rank: int) -> int:
    """Return the delay in ps of the ``rank``-th fastest pin, 1 to 6."""
    return LUT_PINS[-rank]
