"""Generator of Verilog and documents from a configuration: ``python -m gen``."""

from gen.platform import VerilogPlatform
from gen.verilog import Verilog, to_verilog

__all__ = ["Verilog", "VerilogPlatform", "to_verilog"]
