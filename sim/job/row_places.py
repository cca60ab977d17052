"""Addresses of table rows in GPU memory, for NICs that read rows."""

from dataclasses import dataclass

from host.placement.shard import ShardPlan
from host.timing.gpu import GpuProfile
from rtl.formats import OFFSET_BITS, READ_UNIT, DescriptorKind

__all__ = ["ROWS_BASE", "BarError", "RowPlaces", "check_bar", "row_registers"]

ROWS_BASE = 0x10_0000_0000
"""Address of the first table of a node in the memory of its GPU."""

_GIB = 1 << 30


class BarError(ValueError):
    """The tables of a node exceed the BAR of its GPU, through which NICs read rows."""


@dataclass(frozen=True)
class RowPlaces:
    """The tables of a node in GPU memory, in sequence.

    A table that is split by rows occupies its full size on every node, because the address of a row
    follows from its number.

    Members
    -------
    bases: offset of each table from :data:`ROWS_BASE` in bytes; 0 for a table of other nodes.
    end: offset behind the last table.
    row_bytes: bytes of a row.
    tables: numbers of the node's tables, in the order of their bases.
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
    """Raise :class:`BarError` if the tables of a node exceed the BAR of its GPU."""
    for node in range(plan.nodes):
        places = RowPlaces.of(plan, node, dimension)
        most = min(int(gpu.bar_gib * _GIB), READ_UNIT << OFFSET_BITS)
        if places.end > most:
            raise BarError(
                f"row_reads must be false where the tables of a node, {places.end / _GIB:.3g} GiB "
                f"at node {node}, are larger than the BAR of its GPU, {most / _GIB:.3g} GiB "
                f"(bar_gib of {gpu.name}), not True")


def row_registers() -> dict[str, int]:
    """Return the register values of a NIC that reads rows."""
    return {"row_reads": 1, "rows_base_low": ROWS_BASE & 0xFFFF_FFFF,
            "rows_base_high": ROWS_BASE >> 32}
