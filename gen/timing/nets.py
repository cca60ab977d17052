"""Delay of nets in three cases, fixed before any RTL was changed.

There is no placement, so a net's delay is a rule of its fan-out: 150 ps; 350 + 20 sqrt(fan-out);
600 + 40 sqrt(fan-out). The delay holds the pins of the sites at both ends. What a placer keeps in
one site, or what a dedicated wire connects, is no such net: :func:`dedicated` gives its delay in
all three cases.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gen.timing.delays import DELAYS

__all__ = ["CASES", "CASE_NAMES", "Case", "dedicated"]


@dataclass(frozen=True)
class Case:
    """Nets of ``base`` ps, plus ``slope`` ps times the square root of the fan-out."""

    name: str
    base: float
    slope: float

    def delay(self, fan_out: ArrayLike) -> NDArray[np.float64]:
        """Return the delay in ps of nets with ``fan_out`` loads each."""
        return self.base + self.slope * np.sqrt(np.asarray(fan_out, dtype=np.float64))


CASES = (Case("optimistic", 150, 0), Case("middle", 350, 20), Case("pessimistic", 600, 40))
CASE_NAMES = tuple(case.name for case in CASES)

_WIRES = DELAYS["in_slice"]
# Kind and port of the driver, kind and port of the only load. The wires from a LUT to a carry or a
# multiplexer are in the arcs of those.
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
    """Return the delay in ps of a connection that takes no net of the fabric, or else ``None``.

    It goes from port ``output`` of a cell of kind ``source`` (see
    :class:`gen.timing.cells.CellTiming`) to port ``pin`` of one of kind ``sink``; the net has
    ``fan_out`` loads. The carry chain and the cascades of RAMs and DSPs are dedicated whatever else
    the net drives; a LUT, carry or multiplexer sits in the slice of its load if it is the only one.
    Behind a buffer there is no second net: placement folds it into what it drives.
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
