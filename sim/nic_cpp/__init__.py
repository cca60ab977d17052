"""Fidelity ``model``: a C++ model of the NIC's counters and timing, without its RTL."""
