"""Observation of a NIC: event counters, streams by name, overdue answers."""
