"""Where the rows of tables lie in GPU memory, for NICs that read them."""

from dataclasses import dataclass

from host.placement.shard import ShardPlan
from host.timing.gpu import GpuProfile
from rtl.formats import OFFSET_BITS, READ_UNIT, DescriptorKind

__all__ = ["ROWS_BASE", "RowPlaces", "check_bar", "row_registers"]

ROWS_BASE = 0x10_0000_0000
"""Address from which on the tables of a node lie in the memory of its GPU."""

_GIB = 1 << 30


@dataclass(frozen=True)
class RowPlaces:
    """The tables of a node in GPU memory, each whole and one behind the other.

    A table that is split by rows has room for all of them, since a row's address follows from its
    number. Members: ``bases``, of each table in bytes from :data:`ROWS_BASE` on, 0 of those that
    the node does not have; ``end``, where the last one ends; ``row_bytes``; ``tables``, which of
    them the node has, by their bases.
    """

    bases: tuple[int, ...]
    end: int
    row_bytes: int
    tables: tuple[int, ...]

    @classmethod
    def of(cls, plan: ShardPlan, node: int, dimension: int) -> "RowPlaces":
        """Return the places of the tables of ``node``, with vectors of ``dimension`` values."""
        bases, tables, end = [], [], 0
        for number, table in enumerate(plan.tables):
            held = (table.kind == DescriptorKind.REPLICATED
                    or table.owner <= node < table.owner + table.owners)
            bases.append(end if held else 0)
            if held:
                tables.append(number)
                end += 4 * dimension * table.rows
        return cls(tuple(bases), end, 4 * dimension, tuple(tables))

    @property
    def units(self) -> int:
        """The length of a row in units of 16 bytes."""
        return self.row_bytes // READ_UNIT


def check_bar(plan: ShardPlan, dimension: int, gpu: GpuProfile) -> None:
    """Raise ``ValueError`` where tables do not fit what a NIC sees of the memory of its GPU."""
    for node in range(plan.nodes):
        places = RowPlaces.of(plan, node, dimension)
        most = min(int(gpu.bar_gib * _GIB), READ_UNIT << OFFSET_BITS)
        if places.end > most:
            raise ValueError(
                f"row_reads must be false where the tables of a node, {places.end / _GIB:.3g} GiB "
                f"at node {node}, are larger than the BAR of its GPU, {most / _GIB:.3g} GiB "
                f"(bar_gib of {gpu.name}), not True")


def row_registers() -> dict[str, int]:
    """Return the register values of a NIC that reads rows."""
    return {"row_reads": 1, "rows_base_low": ROWS_BASE & 0xFFFF_FFFF,
            "rows_base_high": ROWS_BASE >> 32}
