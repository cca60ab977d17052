"""The command line, a thin skin on :mod:`sim.api`."""
