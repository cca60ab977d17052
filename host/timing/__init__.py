"""Timing models of clock, GPU, PCIe and network, and the cluster that is made of them."""
