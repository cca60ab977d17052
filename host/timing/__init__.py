"""Timing models of clock, GPU, PCIe and network, and the description of a cluster."""
