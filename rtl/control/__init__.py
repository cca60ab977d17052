"""Control: the register map, its block and its AXI4-Lite port."""
