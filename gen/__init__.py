"""Generator of Verilog and documents from a configuration: ``python -m gen``."""

from embernic_names import check_names

check_names(__name__)

from gen.verilog.convert import Verilog, to_verilog  # noqa: E402
from gen.verilog.platform import VerilogPlatform  # noqa: E402

__all__ = ["Verilog", "VerilogPlatform", "to_verilog"]
