"""Table descriptors for block tests: an owner split in Python, and a writer of descriptors."""

from collections.abc import Callable
from dataclasses import dataclass

from rtl.formats import DescriptorKind, Status
from rtl.keys.hash_columns import COLUMNS

TABLE, ROW, COLUMN, REPLICATED = DescriptorKind


@dataclass
class Table:
    """A descriptor as the host sees it."""

    kind: int = TABLE
    owner: int = 0
    owners: int = 1
    rows: int = 100
    valid: int = 1
    pool: int = 0
    mean: int = 0
    final_beat: int = 0

    def words(self) -> list[int]:
        return [self.valid | self.kind << 1 | self.pool << 3 | self.mean << 4 | self.owner << 8
                | self.owners << 16 | self.final_beat << 24,
                self.rows & 0xFFFFFFFF, self.rows >> 32, 0xABCD0123, 0x4567EF89]


def key_hash(table: int, row: int) -> int:
    """Return the 32-bit H3 hash of a key, bit by bit."""
    key, value = row | table << 36, 0
    for bit, column in enumerate(COLUMNS):
        if key >> bit & 1:
            value ^= column
    return value


def split(tables: dict[int, Table], table: int, row: int, node: int, nodes: int = 255,
          replicated: bool = True, bag: int | None = None, beats: int = 16):
    """Return (owner, status) of a key; owner is None if the key has no owner.

    bag: the key is a segment of a bag that pools at its owner; None if the NIC has no such bags.
    beats: most beats of the vector of a bag.
    """
    entry = tables.get(table)
    if entry is None or not entry.valid or (bag and entry.final_beat >= beats):
        return None, Status.TABLE
    if entry.kind == COLUMN or (entry.kind == REPLICATED and not replicated):
        return None, Status.KIND
    if bag is not None and (entry.pool != bag or (bag and entry.kind == ROW)):
        return None, Status.KIND
    if not bag and row >= entry.rows:
        return None, Status.ROW
    owner = entry.owner
    if entry.kind == ROW:
        owner += (key_hash(table, row) & 0xFFFF) * entry.owners >> 16
    elif entry.kind == REPLICATED:
        owner = node
    return (owner, 0) if owner < nodes else (None, Status.TABLE)


def descriptor_writer(dut, tables: dict[int, Table], node: int = 0, nodes: int | None = None,
                      then: Callable | None = None) -> Callable:
    """Return a testbench that loads ``tables`` after the sweep, then runs ``then``."""

    async def bench(ctx):
        ctx.set(dut.node, node)
        if nodes is not None:
            ctx.set(dut.nodes, nodes)
        await ctx.tick().until(dut.write_ready)
        for number, entry in tables.items():
            for word, value in reversed(list(enumerate(entry.words()))):
                ctx.set(dut.write_en, 1)
                ctx.set(dut.write_table, number)
                ctx.set(dut.write_word, word)
                ctx.set(dut.write_data, value)
                await ctx.tick()
        ctx.set(dut.write_en, 0)
        if then is not None:
            await then(ctx)

    return bench
