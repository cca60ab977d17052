"""Generator of Verilog and documents from a configuration: ``python -m gen``."""

from embernic_names import check_names

check_names(__name__)
