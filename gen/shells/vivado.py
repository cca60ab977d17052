"""Verilog as a shell's scripts give it to Vivado."""

from gen.memories import XPM_DEFINE
from gen.verilog import Verilog

__all__ = ["for_vivado"]


def for_vivado(verilog: Verilog) -> str:
    """Return the text of ``verilog`` with the vendor's memories wherever it is synthesised.

    Synthesis defines ``SYNTHESIS``; simulators and lint do not, and keep the behavioural memories.
    The scripts that shells read sources with may set defines of their own and drop others, so that
    the choice is in the file.
    """
    return f"`ifdef SYNTHESIS\n`define {XPM_DEFINE}\n`endif\n{verilog.text}"
