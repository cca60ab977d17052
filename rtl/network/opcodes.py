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
"""Tags, followed by one vector per tag, by edge."""

TRAINING = MappingProxyType({
    "network": MappingProxyType({"partials": Opcode.PARTIALS, "steps": Opcode.STEPS}),
    "host": MappingProxyType({
        "gradients": Opcode.GRADIENTS, "returned": Opcode.RETURNED, "states": Opcode.STATES,
        "written": Opcode.WRITTEN})})
"""Records, by edge and by port of the parser; values follow for PARTIALS and RETURNED."""

RINGS = MappingProxyType({
    "network": MappingProxyType({}),
    "host": MappingProxyType({"opens": Opcode.STEP_OPEN, "flushed": Opcode.FLUSHED})})
"""Records about rings in GPU memory, by edge and by port of the parser."""

READS = MappingProxyType({"network": (), "host": (Opcode.READ_DATA,)})
"""Words of 8 bytes that the NIC has read from GPU memory, by edge. They do not pass a parser:
:class:`rtl.rings.VectorRing` converts them to GPU_VECTORS."""

VALUES = (Opcode.PARTIALS, Opcode.RETURNED)
"""Packets with one beat of values, or a share of a beat, per record."""

UNCOUNTED = (Opcode.GRADIENTS,)
"""Packets whose records determine the number of value beats."""


def more_records(edge: str, training: bool) -> Mapping[str, Opcode]:
    """Return the packets of ``edge`` other than RECORDS and VECTORS, by port of the parser."""
    return {**RINGS[edge], **(TRAINING[edge] if training else {})}
