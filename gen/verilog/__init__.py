"""Verilog of Amaranth components, with owned memories, and what is read from their RTLIL."""
