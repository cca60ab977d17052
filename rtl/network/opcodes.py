"""Which packets come in at an edge of the NIC, and what they are made of."""

from types import MappingProxyType

from rtl.formats import Opcode

__all__ = ["RECORDS", "TRAINING", "UNCOUNTED", "VALUES", "VECTORS"]

RECORDS = MappingProxyType({"network": Opcode.LOOKUPS, "host": Opcode.QUERIES})
"""Records of 8 bytes, by edge."""

VECTORS = MappingProxyType({
    "network": (Opcode.VECTORS,), "host": (Opcode.GPU_VECTORS, Opcode.DENSE_VECTORS)})
"""Tags, then a vector for each, by edge."""

TRAINING = MappingProxyType({
    "network": MappingProxyType({"partials": Opcode.PARTIALS, "steps": Opcode.STEPS}),
    "host": MappingProxyType({
        "gradients": Opcode.GRADIENTS, "returned": Opcode.RETURNED, "states": Opcode.STATES,
        "written": Opcode.WRITTEN})})
"""Records, by edge and by the parser's port; behind them values in two cases."""

VALUES = (Opcode.PARTIALS, Opcode.RETURNED)
"""Each record has a beat of values, or its share of one."""

UNCOUNTED = (Opcode.GRADIENTS,)
"""How many beats of values there are is in the records."""
