"""Delay of nets in three cases. The cases are assumptions, because the design is not placed.

The delay depends on the fan-out: 150 ps; 350 + 20 sqrt(fan-out); 600 + 40 sqrt(fan-out). It
includes the pins of the sites at both ends. Connections inside a site and dedicated wires have
another delay, the same in all cases: :func:`dedicated`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gen.timing.delays import DELAYS

__all__ = ["CASES", "CASE_NAMES", "Case", "dedicated"]


@dataclass(frozen=True)
class Case:
    """Nets of ``base`` ps plus ``slope`` ps times the square root of the fan-out."""

    name: str
    base: float
    slope: float

    def delay(self, fan_out: ArrayLike) -> NDArray[np.float64]:
        """Return the delay in ps of nets with ``fan_out`` loads."""
        return self.base + self.slope * np.sqrt(np.asarray(fan_out, dtype=np.float64))


CASES = (Case("optimistic", 150, 0), Case("middle", 350, 20), Case("pessimistic", 600, 40))
CASE_NAMES = tuple(case.name for case in CASES)

_WIRES = DELAYS["in_slice"]
# Kind and port of the driver, kind and port of the only load. The arcs of a carry or a multiplexer
# include the wire from the LUT.
_ALONE = {
    ("lut", "O", "ff", "D"): _WIRES["lut_to_ff"],
    ("carry", "O", "ff", "D"): _WIRES["carry_o_to_ff"],
    ("carry", "CO", "ff", "D"): _WIRES["carry_co_to_ff"],
    ("mux", "O", "ff", "D"): _WIRES["mux_to_ff"],
    ("lut", "O", "carry", "S"): 0,
    ("lut", "O", "mux", "I0"): 0,
    ("lut", "O", "mux", "I1"): 0,
    ("mux", "O", "mux", "I0"): 0,
    ("mux", "O", "mux", "I1"): 0,
}
_DSP_CASCADES = {"ACOUT": "ACIN", "BCOUT": "BCIN", "PCOUT": "PCIN",
                 "CARRYCASCOUT": "CARRYCASCIN", "MULTSIGNOUT": "MULTSIGNIN"}


def dedicated(source: str, output: str, sink: str, pin: str, fan_out: int) -> float | None:
    """Return the delay in ps of a connection outside the fabric, or ``None`` for a net of the
    fabric.

    The carry chain and the cascades of RAMs and DSPs are dedicated, whatever else the net drives. A
    LUT, carry or multiplexer is in the slice of its load if it has one load. A buffer has no second
    net, because placement merges it with its load.

    Parameters
    ----------
    source, output: kind of the driving cell (:class:`gen.timing.cells.CellTiming`), and its port.
    sink, pin: kind of the loading cell, and its port.
    fan_out: number of loads of the net.
    """
    if source == "buffer":
        return 0
    if (source, sink) == ("carry", "carry") and (output, pin) == ("CO", "CI"):
        return 0
    if (source, sink) == ("dsp", "dsp") and _DSP_CASCADES.get(output) == pin:
        return 0
    if source == sink == "bram" and output.startswith("CASDOUT"):
        return 0 if pin == output.replace("OUT", "IN") else None
    if source == sink == "uram" and output.startswith("CAS_OUT_"):
        return 0 if pin == output.replace("OUT", "IN", 1) else None
    return _ALONE.get((source, output, sink, pin)) if fan_out == 1 else None
