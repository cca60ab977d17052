"""Control: the register map, its block and the AXI4-Lite port to it."""
