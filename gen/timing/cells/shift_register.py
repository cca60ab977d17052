"""Shift registers in LUTs: SRL16E, SRLC16E, SRLC32E."""

from collections.abc import Mapping

from gen.timing.cells.model import Arc, Capture, CellTiming, Launch, Pin, pins
from gen.timing.delays import DELAYS

__all__ = ["SHIFT_REGISTERS", "shift_register"]

SHIFT_REGISTERS = {"SRL16E": "", "SRLC16E": "Q15", "SRLC32E": "Q31"}
"""Types of shift register, with the port of the last bit."""


def shift_register(kind: str, widths: Mapping[str, int]) -> CellTiming:
    """Return the timing of ``kind``. The address reads; its bit 0 is pin A2 of the LUT."""
    ps, last = DELAYS["shift"], SHIFT_REGISTERS[kind]
    address = pins("A", widths) if kind == "SRLC32E" else [Pin(f"A{n}") for n in range(4)]
    outputs = [Pin("Q")] + ([Pin(last)] if last else [])
    return CellTiming(
        "shift",
        arcs=tuple(Arc(pin, Pin("Q"), delay) for pin, delay in zip(address, ps["address"])),
        launches=tuple(Launch(pin, ps["clock_to_out"]) for pin in outputs),
        captures=(Capture(Pin("D"), ps["data"], "data"),
                  Capture(Pin("CE"), ps["enable"], "enable")),
        clocks=("CLK",))
