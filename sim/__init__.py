"""Runs clusters of SmartNICs cycle by cycle: engines, nodes, the cluster, reports."""

from embernic_names import check_names

check_names(__name__)
