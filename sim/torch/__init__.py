"""Simulation of PyTorch programs on NICs: capture, values, times, report.

``program`` runs a script; ``modules`` contains modules that run only on NICs. Packages, from the
top: ``report`` (results), ``processes`` (several processes as a cluster), ``catching`` (captured
operators and the session that answers them), ``values`` (NICs in RTL and their optimizer),
``lookups`` (bags, tables, mini-batches).
"""

from embernic_extras import require

require("torch", "sim.torch")
