"""PyTorch programs whose embedding bags go through the NICs: capture, values, times, report.

``program`` runs a script; ``modules`` are for programs that are written for the NICs. Below them:
``report`` (what is told at the end), ``processes`` (several as one cluster), ``catching``
(operators, and the session that answers them), ``values`` (NICs in RTL, their optimizer),
``lookups`` (bags, tables, mini-batches).
"""

from embernic_extras import require

require("torch", "sim.torch")
