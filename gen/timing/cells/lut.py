"""LUTs. The pins of a LUT are free: a tool gives the input that arrives last the fastest one.

So a LUT's arcs have 0 ps; whoever knows the arrivals adds :data:`LUT_PINS`: the i-th latest input
gets the i-th fastest pin.
"""

from gen.timing.cells.model import Arc, CellTiming, Pin
from gen.timing.delays import DELAYS

__all__ = ["LUT_PINS", "lut", "lut_pin"]

LUT_PINS: tuple[int, ...] = tuple(DELAYS["lut"]["pins"])
"""From pin to output in ps, slowest pin first."""


def lut(inputs: int) -> CellTiming:
    """Return the timing of LUT1 to LUT6: inputs ``I0`` on, output ``O``."""
    return CellTiming("lut", tuple(Arc(Pin(f"I{n}"), Pin("O"), 0) for n in range(inputs)))


def lut_pin(rank: int) -> int:
    """Return the delay from the ``rank``-th fastest pin, 1 to 6, in ps."""
    return LUT_PINS[-rank]
