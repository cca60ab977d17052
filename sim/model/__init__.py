"""Fidelity ``model``: NICs that are counted and timed without their RTL."""
