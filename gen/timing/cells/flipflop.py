"""Flip-flops: FDRE and FDSE (synchronous reset and set), FDCE and FDPE (asynchronous)."""

from gen.timing.cells.model import Capture, CellTiming, Launch, Pin
from gen.timing.delays import DELAYS

__all__ = ["FLIP_FLOPS", "flip_flop"]

FLIP_FLOPS = {"FDRE": "R", "FDSE": "S", "FDCE": "CLR", "FDPE": "PRE"}
"""Types of flip-flop, with the port that resets or sets it."""


def flip_flop(kind: str) -> CellTiming:
    """Return the timing of flip-flop ``kind``.

    The sources have no recovery time for asynchronous resets; the setup of R is used.
    """
    ps = DELAYS["ff"]
    return CellTiming(
        "ff", launches=(Launch(Pin("Q"), ps["clock_to_q"]),),
        captures=(Capture(Pin("D"), ps["data"], "data"),
                  Capture(Pin("CE"), ps["enable"], "enable"),
                  Capture(Pin(FLIP_FLOPS[kind]), ps["reset"], "reset")),
        clocks=("C",))
