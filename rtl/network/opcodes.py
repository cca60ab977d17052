"""Packets that arrive at each edge of the NIC, and their content."""

from collections.abc import Mapping
from types import MappingProxyType

from rtl.formats import Opcode

__all__ = ["BAGS", "BAG_GRADIENTS", "BAG_VECTORS", "READS", "RECORDS", "RINGS", "TRAINING",
           "UNCOUNTED", "VALUES", "VECTORS", "more_records", "vectors_of"]

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

BAGS = MappingProxyType({
    "network": MappingProxyType({"bags": Opcode.BAGS}), "host": MappingProxyType({})})
"""Words of bags that pool at their owner, by edge and by port of the parser; with owner pooling."""

BAG_GRADIENTS = MappingProxyType({
    "network": MappingProxyType({}),
    "host": MappingProxyType({"bag_gradients": Opcode.BAG_GRADIENTS})})
"""Words of bags with their gradients, by edge and by port of the parser; with owner pooling and
training. Between NICs, they are among the BAGS."""

BAG_VECTORS = MappingProxyType({
    "network": (Opcode.BAG_VECTORS,), "host": (Opcode.GPU_BAGS,)})
"""Tags, followed by the sum of a bag per tag, by edge; with owner pooling."""

READS = MappingProxyType({"network": (), "host": (Opcode.READ_DATA,)})
"""Words of 8 bytes that the NIC has read from GPU memory, by edge. They do not pass a parser:
:class:`rtl.rings.VectorRing` converts them to GPU_VECTORS."""

VALUES = (Opcode.PARTIALS, Opcode.RETURNED)
"""Packets with one beat of values, or a share of a beat, per record."""

UNCOUNTED = (Opcode.GRADIENTS,)
"""Packets whose records determine the number of value beats."""


def more_records(edge: str, training: bool, bags: bool = False) -> Mapping[str, Opcode]:
    """Return the packets of ``edge`` other than RECORDS and vectors, by port of the parser.

    training, bags: with packets of training, and of owner pooling.
    """
    return {**RINGS[edge], **(TRAINING[edge] if training else {}), **(BAGS[edge] if bags else {}),
            **(BAG_GRADIENTS[edge] if training and bags else {})}


def vectors_of(edge: str, bags: bool = False) -> tuple[Opcode, ...]:
    """Return the packets of vectors of ``edge``; ``bags``: with owner pooling."""
    return (*VECTORS[edge], *(BAG_VECTORS[edge] if bags else ()))
