"""Form of Verilog for the Vivado scripts of the shells."""

from gen.verilog.convert import Verilog
from gen.verilog.memories import XPM_DEFINE

__all__ = ["for_vivado"]


def for_vivado(verilog: Verilog) -> str:
    """Return the text of ``verilog`` with the vendor's memories in synthesis.

    Synthesis defines ``SYNTHESIS``; simulators and lint do not, and keep the behavioural memories.
    The file itself selects the memories, because the shells' scripts may replace defines.
    """
    return f"`ifdef SYNTHESIS\n`define {XPM_DEFINE}\n`endif\n{verilog.text}"
