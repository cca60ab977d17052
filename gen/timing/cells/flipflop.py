"""Flip-flops: FDRE and FDSE (synchronous reset and set), FDCE and FDPE (asynchronous)."""

from gen.timing.cells.model import Capture, CellTiming, Launch, Pin
from gen.timing.delays import DELAYS

__all__ = ["FLIP_FLOPS", "flip_flop"]

FLIP_FLOPS = {"FDRE": "R", "FDSE": "S", "FDCE": "CLR", "FDPE": "PRE"}
"""Types of flip-flop, with the port that resets or sets."""


def flip_flop(kind: str) -> CellTiming:
    """Return the timing of flip-flop ``kind``.

    The recovery of an asynchronous reset is not in the sources: it is taken as the setup of R.
    """
    ps = DELAYS["ff"]
    return CellTiming(
        "ff", launches=(Launch(Pin("Q"), ps["clock_to_q"]),),
        captures=(Capture(Pin("D"), ps["data"], "data"),
                  Capture(Pin("CE"), ps["enable"], "enable"),
                  Capture(Pin(FLIP_FLOPS[kind]), ps["reset"], "reset")),
        clocks=("C",))
