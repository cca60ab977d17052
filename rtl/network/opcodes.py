"""Packets that arrive at each edge of the NIC, and their content."""

from collections.abc import Mapping
from types import MappingProxyType

from rtl.formats import Opcode

__all__ = ["READS", "RECORDS", "RINGS", "TRAINING", "UNCOUNTED", "VALUES", "VECTORS",
           "more_records"]

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
    "network": MappingProxyType({}),
    "host": MappingProxyType({"opens": Opcode.STEP_OPEN, "flushed": Opcode.FLUSHED})})
"""Records about the rings in GPU memory, by edge and by the parser's port."""

READS = MappingProxyType({"network": (), "host": (Opcode.READ_DATA,)})
"""Words of 8 bytes that a NIC has read from GPU memory, by edge: no parser sees them, since
:class:`rtl.rings.VectorRing` makes GPU_VECTORS of them."""

VALUES = (Opcode.PARTIALS, Opcode.RETURNED)
"""Each record has a beat of values, or a share of one."""

UNCOUNTED = (Opcode.GRADIENTS,)
"""The number of beats of values follows from the records."""


def more_records(edge: str, training: bool) -> Mapping[str, Opcode]:
    """Return the packets of an ``edge`` beside RECORDS and VECTORS, by the parser's port."""
    return {**RINGS[edge], **(TRAINING[edge] if training else {})}
