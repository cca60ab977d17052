"""Multiplexers between the LUTs of a slice: MUXF7, MUXF8, MUXF9."""

from gen.timing.cells.model import Arc, CellTiming, Pin
from gen.timing.delays import DELAYS

__all__ = ["wide_mux"]


def wide_mux(kind: str) -> CellTiming:
    """Return the timing of ``kind``. The arcs include the wire from the LUTs to a MUXF7."""
    wires = DELAYS["in_slice"]["lut_to_mux"] if kind == "MUXF7" else (0, 0)
    ps, out = DELAYS["mux"], Pin("O")
    return CellTiming("mux", (Arc(Pin("I0"), out, wires[0] + ps["data"]),
                              Arc(Pin("I1"), out, wires[1] + ps["data"]),
                              Arc(Pin("S"), out, ps["select"])))
