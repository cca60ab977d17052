"""Node: one NIC with its host and GPU, the Python reference."""
