"""Packets that arrive at each edge of the NIC, and their content."""

from types import MappingProxyType

from rtl.formats import Opcode

__all__ = ["RECORDS", "RINGS", "TRAINING", "UNCOUNTED", "VALUES", "VECTORS"]

RECORDS = MappingProxyType({"network": Opcode.LOOKUPS, "host": Opcode.QUERIES})
"""Records of 8 bytes, by edge."""

VECTORS = MappingProxyType({
    "network": (Opcode.VECTORS,), "host": (Opcode.GPU_VECTORS, Opcode.DENSE_VECTORS)})
"""Tags followed by a vector for each, by edge."""

TRAINING = MappingProxyType({
    "network": MappingProxyType({"partials": Opcode.PARTIALS, "steps": Opcode.STEPS}),
    "host": MappingProxyType({
        "gradients": Opcode.GRADIENTS, "returned": Opcode.RETURNED, "states": Opcode.STATES,
        "written": Opcode.WRITTEN})})
"""Records, by edge and by the parser's port; in two cases values follow."""

RINGS = MappingProxyType({
    "opens": Opcode.STEP_OPEN, "flushed": Opcode.FLUSHED, "reads": Opcode.READ_DATA})
"""From the host, by the port of a block of :mod:`rtl.rings`."""

VALUES = (Opcode.PARTIALS, Opcode.RETURNED)
"""Each record has a beat of values, or a share of one."""

UNCOUNTED = (Opcode.GRADIENTS,)
"""The number of beats of values follows from the records."""
