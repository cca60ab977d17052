"""Runs clusters of SmartNICs cycle by cycle: engines, nodes, the cluster, reports."""
