"""Sweeps: many points measured, on this machine or a cluster."""
