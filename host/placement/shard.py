"""ShardPlan: the assignment of rows to nodes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import numpy as np

from host.distinct import distinct
from host.dlrm.formats import in_lanes
from host.model import Model
from host.placement.deal import Rule, given_owners
from host.samples import KEY_ROW_BITS, Samples
from host.wire.layouts import pack
from rtl.formats import (
    NODE_BITS,
    ROW_BITS,
    TABLE_BITS,
    DescriptorKind,
    PoolPlace,
    TableDescriptor,
)
from rtl.keys.hash_columns import COLUMNS, KEY_BITS

__all__ = ["OWNER_BITS", "Placement", "ShardPlan", "foreign_keys", "hash_tables", "key_hash"]

OWNER_BITS = 16
"""Low bits of the key hash that select the owner of a row."""


@cache
def hash_tables() -> np.ndarray:
    """Return the XOR of the hash constants of every value of every byte of a key.

    uint32 ``[bytes, 256]``, read-only.
    """
    tables = np.zeros((KEY_BITS // 8, 256), np.uint32)
    for bit, column in enumerate(COLUMNS):
        holds = np.arange(256) >> bit % 8 & 1
        tables[bit // 8] ^= np.where(holds, np.uint32(column), np.uint32(0))
    return tables


def key_hash(tables: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return `rtl.keys.hash_columns.key_hash` of each key: uint32 ``[n]``."""
    keys = np.asarray(rows, np.int64) | np.asarray(tables, np.int64) << KEY_ROW_BITS
    value = np.zeros(keys.shape, np.uint32)
    for byte, table in enumerate(hash_tables()):
        value ^= table[keys >> 8 * byte & 255]
    return value


_EVEN = Rule()


@dataclass(frozen=True)
class Placement:
    """Placement of a table: the fields of `rtl.formats.TableDescriptor`.

    ``kind`` TABLE: all rows at ``owner``. ROW: hashed over ``owners`` nodes, starting at ``owner``.
    REPLICATED: a copy at every node. ``values``: relative size of a row, by which rules balance.
    ``pool``: node that adds the vectors of a bag. ``mean``: whether bags pool to their mean, for
    NICs that pool each table in its own way. ``weighted``: whether bags have a weight for each key.
    ``beats``: beats of a bag's vector.
    """

    kind: DescriptorKind
    rows: int
    owner: int = 0
    owners: int = 1
    values: int = 1
    pool: PoolPlace = PoolPlace.REQUESTER
    mean: bool = False
    weighted: bool = False
    beats: int = 1


@dataclass(frozen=True)
class ShardPlan:
    """The placement of every table over ``nodes`` nodes.

    rule: rule that assigns whole tables, also when tables are reassigned.
    own_at_gpu: whether GPUs pool the bags of their own node in every table without hashed rows;
        otherwise only in tables that pool at their owner.

    Raises
    ------
    ValueError
        A table is split by columns, which is not supported, or refers to nodes beyond the cluster
        or rows beyond the descriptor. A table with hashed rows pools at its owner.
    """

    nodes: int
    tables: tuple[Placement, ...]
    rule: Rule = _EVEN
    own_at_gpu: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= 1 << NODE_BITS:
            raise ValueError(f"nodes must be between 1 and {1 << NODE_BITS}, not {self.nodes!r}")
        if not 1 <= len(self.tables) <= 1 << TABLE_BITS:
            raise ValueError(f"tables must be between 1 and {1 << TABLE_BITS}, "
                             f"not {len(self.tables)!r}")
        for number, table in enumerate(self.tables):
            if table.kind == DescriptorKind.COLUMN:
                raise ValueError(f"table {number} is split by columns, which is not supported: "
                                 f"kind must be TABLE, ROW or REPLICATED, not {table.kind!r}")
            if not 1 <= table.rows < 1 << ROW_BITS:
                raise ValueError(f"rows of table {number} must be between 1 and "
                                 f"{(1 << ROW_BITS) - 1}, not {table.rows!r}")
            if table.pool == PoolPlace.OWNER and table.kind == DescriptorKind.ROW:
                raise ValueError(f"table {number} must pool at the requester, not at the owner: "
                                 f"its rows are hashed over {table.owners} nodes")
            most = min(self.nodes, (1 << NODE_BITS) - 1)
            if not 1 <= table.owners <= most:
                raise ValueError(f"owners of table {number} must be between 1 and {most}, "
                                 f"not {table.owners!r}")
            if not 0 <= table.owner <= self.nodes - table.owners:
                raise ValueError(f"owner of table {number} must be between 0 and "
                                 f"{self.nodes - table.owners}, not {table.owner!r}")

    @classmethod
    def deal(cls, model: Model, nodes: int, placement: str = "even",
             lookups: Sequence[int] | None = None, gpus: int = 1,
             tables: int | None = None, wire: str = "float32") -> "ShardPlan":
        """Place the tables of ``model`` by one of `host.placement.deal.PLACEMENTS`, or at listed
        nodes.

        ``even``, ``rows`` and ``lookups`` place whole tables, see `host.placement.deal.Rule`.
        ``row`` hashes the rows of every table over all nodes. With more nodes than tables, rows are
        always hashed, unless nodes are listed.

        lookups: measured lookups of each table, required by the placement ``lookups``.
        gpus: consecutive nodes that are GPUs of one host.
        tables: number of tables that decides whether rows are hashed, if ``model`` is the part of a
        model that is not copied; None for the tables of ``model``.
        wire: format of vectors, which decides the beats of a bag's vector.

        Raises ``ValueError`` for an unknown placement, and for missing or too many lookups or
        nodes.
        """
        rule = Rule(placement, None if lookups is None else tuple(map(int, lookups)), gpus)
        if rule.lookups is not None and len(rule.lookups) != model.tables:
            raise ValueError(f"lookups must be {model.tables} numbers, one for each table, "
                             f"not {len(rule.lookups)}")
        given = given_owners(placement)
        if given is not None and len(given) != model.tables:
            raise ValueError(f"placement must have {model.tables} nodes, one for each table, "
                             f"not {len(given)}")
        weighted = [table in model.weighted_tables for table in range(model.tables)]
        sizes = tuple(zip(model.rows, model.dimensions or (1,) * model.tables, weighted,
                          in_lanes(model, wire).beats))
        if placement == "row" or (nodes > (tables or model.tables) and given is None):
            return cls(nodes, tuple(Placement(DescriptorKind.ROW, rows, 0, nodes, values,
                                              weighted=heavy, beats=beats)
                                    for rows, values, heavy, beats in sizes), rule)
        return cls(nodes, tuple(Placement(DescriptorKind.TABLE, rows, values=values,
                                          weighted=heavy, beats=beats)
                                for rows, values, heavy, beats in sizes), rule).dealt_anew()

    def dealt_anew(self) -> "ShardPlan":
        """Return this plan with its whole tables reassigned by the rule.

        Hashed and replicated tables do not change and do not count.
        """
        owners = self.rule.owners({
            number: table.rows * table.values for number, table in enumerate(self.tables)
            if table.kind == DescriptorKind.TABLE}, self.nodes)
        return replace(self, tables=tuple(
            replace(table, owner=owners[number]) if number in owners else table
            for number, table in enumerate(self.tables)))

    def with_copies(self, rows: int) -> "ShardPlan":
        """Return this plan with a copy at every node of each table of at most ``rows`` rows.

        The rule reassigns the remaining whole tables as if the copied tables did not exist. Hashed
        tables do not change.
        """
        small = [table.rows <= rows for table in self.tables]
        if not any(small) or self.nodes == 1:
            return self
        return replace(self, tables=tuple(
            replace(table, kind=DescriptorKind.REPLICATED, owner=0, owners=1)
            if is_small else table
            for table, is_small in zip(self.tables, small))).dealt_anew()

    def with_pools(self, pools: Sequence[PoolPlace]) -> "ShardPlan":
        """Return this plan with the place at which the bags of each table are pooled.

        ``ValueError`` unless there is a place for each table, or if a table with hashed rows would
        pool at its owner.
        """
        if len(pools) != len(self.tables):
            raise ValueError(f"pools must have {len(self.tables)} places, one for each table, "
                             f"not {len(pools)}")
        return replace(self, tables=tuple(
            replace(table, pool=pool) for table, pool in zip(self.tables, pools)))

    def with_owner_tables(self, owner: Collection[int]) -> "ShardPlan":
        """Return this plan with the tables of these numbers pooled at their owner, and all other
        tables at the requester. ``ValueError`` as of :meth:`with_pools`."""
        return self.with_pools([PoolPlace.OWNER if number in owner else PoolPlace.REQUESTER
                                for number in range(len(self.tables))])

    def with_means(self, poolings: Sequence[str]) -> "ShardPlan":
        """Return this plan for NICs that pool the bags of each table by its entry in ``poolings``,
        ``sum`` or ``mean``.

        ``ValueError`` unless there is an entry for each table.
        """
        if len(poolings) != len(self.tables):
            raise ValueError(f"poolings must have {len(self.tables)} entries, one for each table, "
                             f"not {len(poolings)}")
        return replace(self, tables=tuple(replace(table, mean=pooling == "mean")
                                          for table, pooling in zip(self.tables, poolings)))

    @property
    def means(self) -> np.ndarray:
        """Whether NICs divide the sums of each table: bool ``[tables]``."""
        return np.array([table.mean for table in self.tables])

    @property
    def owner_pooled(self) -> np.ndarray:
        """The rows of each table that pools at its owner, 0 for other tables: int64 ``[tables]``.
        """
        return np.array([table.rows if table.pool == PoolPlace.OWNER else 0
                         for table in self.tables], np.int64)

    @property
    def weighted(self) -> np.ndarray:
        """Whether the bags of each table have weights: bool ``[tables]``."""
        return np.array([table.weighted for table in self.tables])

    @property
    def beats(self) -> np.ndarray:
        """Beats of a bag's vector of each table: int64 ``[tables]``."""
        return np.array([table.beats for table in self.tables], np.int64)

    @property
    def pools_at_owner(self) -> bool:
        """Whether a table pools at its owner."""
        return any(table.pool == PoolPlace.OWNER for table in self.tables)

    @property
    def gpus_pool(self) -> bool:
        """Whether GPUs pool bags that do not pass the NIC of their node."""
        return self.own_at_gpu or self.pools_at_owner

    def own_pooled(self, node: int) -> np.ndarray:
        """Return the tables whose bags the GPU of ``node`` pools for the samples of its own node:
        bool ``[tables]``. It has all rows of these tables."""
        held = np.array([table.kind == DescriptorKind.REPLICATED or (
            table.kind == DescriptorKind.TABLE and table.owner == node) for table in self.tables])
        return held & (self.own_at_gpu | (self.owner_pooled > 0))

    @property
    def own_by_node(self) -> np.ndarray:
        """:meth:`own_pooled` of every node: bool ``[nodes, tables]``."""
        return np.array([self.own_pooled(node) for node in range(self.nodes)])

    def joined(self, gpus: int) -> "ShardPlan":
        """Return the plan of NICs that serve ``gpus`` consecutive nodes of this plan each.

        A NIC owns the rows of all its nodes, and has their copies. Hashed tables must be spread
        over all nodes.
        """
        if gpus == 1:
            return self
        return replace(self, nodes=self.nodes // gpus, tables=tuple(
            replace(table, owner=table.owner // gpus, owners=max(1, table.owners // gpus))
            for table in self.tables))

    def descriptors(self, bases: Sequence[int] | None = None) -> np.ndarray:
        """Return the descriptor words of each table: uint32 ``[tables, 5]``.

        bases: address of each table in GPU memory, in bytes, for a NIC that reads rows.
        """
        def column(name: str) -> np.ndarray:
            return np.array([getattr(table, name) for table in self.tables], np.int64)

        rows = column("rows")
        return pack(TableDescriptor, len(self.tables), valid=1, kind=column("kind"),
                    pool=column("pool"), mean=column("mean"), owner=column("owner"),
                    owners=column("owners"),
                    final_beat=np.where(self.owner_pooled > 0, self.beats - 1, 0),
                    rows_low=rows & 0xFFFFFFFF, rows_high=rows >> 32,
                    base=np.array(bases or [0] * len(self.tables), np.uint64))

    def owner_of(self, tables: np.ndarray, rows: np.ndarray,
                 requester: np.ndarray | int = 0) -> np.ndarray:
        """Return the node that answers each lookup: int64 ``[n]``.

        The owner of a hashed row is ``owner + ((low 16 bits of key_hash · owners) >> 16)``. The
        ``requester`` looks up replicated tables itself.
        """
        tables = np.asarray(tables, np.int64)
        kind = np.array([table.kind for table in self.tables])[tables]
        owner = np.array([table.owner for table in self.tables])[tables]
        owners = np.array([table.owners for table in self.tables])[tables]
        low = (key_hash(tables, rows) & np.uint32((1 << OWNER_BITS) - 1)).astype(np.int64)
        owner = np.where(kind == DescriptorKind.ROW, owner + (low * owners >> OWNER_BITS), owner)
        return np.where(kind == DescriptorKind.REPLICATED, requester, owner)

    def rows_held(self, each: Sequence[int] = ()) -> list[int]:
        """Return each node's number of rows; hashed tables count equal shares, rounded down.

        each: weight of a row of each table, such as its bytes; empty counts rows.
        """
        held = [0] * self.nodes
        for table, weight in zip(self.tables, each or [1] * len(self.tables)):
            if table.kind == DescriptorKind.REPLICATED:
                nodes, share = range(self.nodes), table.rows
            else:
                nodes = range(table.owner, table.owner + table.owners)
                share = table.rows // table.owners
            for node in nodes:
                held[node] += weight * share
        return held


def foreign_keys(plan: ShardPlan, samples: Samples, shares: Sequence[int]) -> int:
    """Return the number of distinct foreign keys in the shares of all nodes, without the keys of
    owner-pooled tables, which are not looked up.

    shares: first sample of each node's share, then the number of samples.
    """
    found, looked_up = 0, plan.owner_pooled == 0
    for node, (first, last) in enumerate(pairwise(shares)):
        share = samples.slice(first, last)
        foreign = looked_up[share.tables] & (
            plan.owner_of(share.tables, share.rows, node) != node)
        found += len(distinct(share.keys[foreign]))
    return found
