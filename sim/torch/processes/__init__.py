"""Processes of a PyTorch program, merged as the nodes of a cluster."""
