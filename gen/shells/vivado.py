"""Form of Verilog for the scripts in which a shell calls Vivado."""

from gen.verilog.convert import Verilog
from gen.verilog.memories import XPM_DEFINE

__all__ = ["for_vivado"]


def for_vivado(verilog: Verilog) -> str:
    """Return the text of ``verilog`` so that synthesis always uses the vendor's memories.

    Synthesis defines ``SYNTHESIS``; simulators and lint do not, and keep the behavioural memories.
    The shells' scripts may set their own defines and drop others, so the file itself decides.
    """
    return f"`ifdef SYNTHESIS\n`define {XPM_DEFINE}\n`endif\n{verilog.text}"
