"""Verilog of Amaranth components, with owned memories, and a reader of their RTLIL."""
