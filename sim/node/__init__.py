"""Node: one NIC with its host and GPU, the reference in Python."""
