"""Cluster: nodes, the exchange of frames between them, and the watchdog."""
