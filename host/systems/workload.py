"""Traffic of one mini-batch on a cluster: lookups, pooled vectors and keys between nodes."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import Samples, segment_indices, share_sizes
from rtl.formats import DescriptorKind

__all__ = ["Workload", "repeated_bags", "workload_of"]

_MOST_FLAGS = 1 << 28
"""Flags of distinct pairs at most at once, a byte each."""


@dataclass(frozen=True, eq=False)
class Workload:
    """Counts of one mini-batch, split into contiguous shares over the nodes. Compared by identity.

    Members, all int64
    ------------------
    model, plan: the model and the placement of its tables.
    samples: samples per share, ``[nodes]``.
    lookups: keys, ``[requester, owner]``.
    bags: bags of these keys, each pooled to a vector by an owner, ``[requester, owner]``. A bag
        with rows at several owners counts at each owner; an empty bag counts at no owner.
    requested: distinct keys of a requester's share at each owner, ``[requester, owner]``.
    unique: distinct keys of the mini-batch at each owner, ``[owner]``. Keys of replicated tables
        count at the requester.
    tables: tables with rows at each node, including replicated tables, ``[node]``.
    distinct: distinct keys of the mini-batch over all owners.
    whole: non-empty bags, ``[requester]``. A bag counts once, even if several owners have rows.
    varies: whether bags of a table have different lengths, so that a host must be told how much it
        receives. One value for the mini-batch.
    repeats: ``(lookups, bags, whole)`` without bags that equal the bag of their table in the
        preceding sample of the share, or None if all bags differ.
    by_dimension: for each dimension of a table, ascending, the counts of the tables of this
        dimension; empty if all tables have the same.
    """

    model: Model
    plan: ShardPlan
    samples: np.ndarray
    lookups: np.ndarray
    bags: np.ndarray
    requested: np.ndarray
    unique: np.ndarray
    tables: np.ndarray
    distinct: int
    whole: np.ndarray
    varies: bool = False
    repeats: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    by_dimension: tuple[tuple[int, "Workload"], ...] = ()

    @property
    def parts(self) -> tuple[tuple[int, "Workload"], ...]:
        """Values of a vector, and the counts of the tables of this dimension."""
        return self.by_dimension or ((self.model.table_dimensions[0], self),)

    @cached_property
    def hashed(self) -> bool:
        """Whether rows of a table are hashed over several nodes."""
        return any(table.kind == DescriptorKind.ROW and table.owners > 1
                   for table in self.plan.tables)

    @property
    def nodes(self) -> int:
        """Nodes of the cluster."""
        return len(self.samples)

    @cached_property
    def once(self) -> "Workload":
        """The mini-batch with consecutive equal bags of a share counted once."""
        if self.repeats is None:
            return self
        lookups, bags, whole = self.repeats
        return replace(self, lookups=lookups, bags=bags, whole=whole, repeats=None,
                       by_dimension=tuple((dimension, part.once)
                                          for dimension, part in self.by_dimension))

    @property
    def distinct_bags(self) -> np.ndarray:
        """``whole`` of :attr:`once`."""
        return self.once.whole

    @property
    def accesses(self) -> int:
        """Lookups of the mini-batch."""
        return int(self.lookups.sum())

    @property
    def similarity(self) -> float:
        """1 - unique keys / accesses; 0 without accesses."""
        return 1 - self.distinct / self.accesses if self.accesses else 0.0


def workload_of(samples: Samples, model: Model, plan: ShardPlan) -> Workload:
    """Return the counts of a mini-batch whose samples are split over the nodes of ``plan``."""
    nodes = plan.nodes
    requester = samples.requesters(nodes)
    owner = plan.owner_of(samples.tables, samples.rows, requester)
    keys, number = samples.numbered
    lengths, pair = samples.bag_lengths, requester * nodes + owner
    bag = np.repeat(np.arange(lengths.size), lengths.reshape(-1))
    shares = np.array(share_sizes(len(samples), nodes))
    of_bag = np.repeat(np.arange(nodes), shares * lengths.shape[1])
    filled, repeated = lengths.reshape(-1) > 0, repeated_bags(samples, nodes).reshape(-1)
    varies = bool(len(lengths) and (lengths != lengths[0]).any())

    def counts(keys: slice | np.ndarray, bags: np.ndarray) -> tuple[np.ndarray, ...]:
        return (_square(pair[keys], nodes),
                _square(_groups(pair[keys], bag[keys], lengths.size), nodes),
                np.bincount(of_bag[bags], minlength=nodes))

    def part(tables: np.ndarray, mine: slice | np.ndarray, distinct: int) -> Workload:
        """Return the counts of the keys ``mine`` in ``tables``."""
        bags = filled & np.tile(np.isin(np.arange(model.tables), tables), len(samples))
        new = ~repeated[bag]
        if isinstance(mine, np.ndarray):
            new &= mine
        lookups, vectors, whole = counts(mine, bags)
        return Workload(
            model, plan, shares, lookups, vectors,
            _square(_groups(pair[mine], number[mine], keys), nodes),
            np.bincount(_groups(owner[mine], number[mine], keys), minlength=nodes),
            _tables_held(plan, tables), distinct, whole, varies,
            counts(new, bags & ~repeated) if (bags & repeated).any() else None)

    found = part(np.arange(model.tables), slice(None), keys)
    dimensions = np.array(model.table_dimensions)
    if len(set(model.table_dimensions)) == 1:
        return found
    return replace(found, by_dimension=tuple(
        (int(dimension), part(np.flatnonzero(dimensions == dimension), mine,
                              len(np.unique(number[mine]))))
        for dimension in np.unique(dimensions)
        for mine in [dimensions[samples.tables] == dimension]))


def repeated_bags(samples: Samples, nodes: int) -> np.ndarray:
    """Return whether each bag equals the bag of its table in the preceding sample of its share.

    bool ``[samples, tables]``. Keys are compared in order.
    """
    lengths = samples.bag_lengths
    same = np.zeros(lengths.shape, bool)
    if len(lengths) < 2:
        return same
    same[1:] = lengths[1:] == lengths[:-1]
    same[np.cumsum(share_sizes(len(samples), nodes))[:-1].clip(max=len(lengths) - 1)] = False
    begins = samples.bag_offsets[:-1].reshape(lengths.shape)
    later = np.flatnonzero(same)
    sizes = lengths.reshape(-1)[later]
    first, second = (segment_indices(of.reshape(-1)[later - shift], sizes)
                     for of, shift in ((begins, lengths.shape[1]), (begins, 0)))
    differs = samples.rows[first] != samples.rows[second]
    same.reshape(-1)[np.repeat(later, sizes)[differs]] = False
    return same


def _square(pairs: np.ndarray, nodes: int) -> np.ndarray:
    return np.bincount(pairs, minlength=nodes * nodes).reshape(nodes, nodes)


def _groups(group: np.ndarray, item: np.ndarray, items: int) -> np.ndarray:
    """Return the group of each distinct pair of a group and one of ``items`` items."""
    size = max(1, items)
    count = int(group.max()) + 1 if len(group) else 0
    block = max(1, _MOST_FLAGS // size)  # flags are several times as fast as a sort
    found = []
    for first in range(0, count, block):
        mine = slice(None) if count <= block else (group >= first) & (group < first + block)
        there = np.zeros(min(block, count - first) * size, bool)
        there[(group[mine] - first) * np.int64(size) + item[mine]] = True
        found.append(np.flatnonzero(there) // size + first)
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _tables_held(plan: ShardPlan, tables: np.ndarray) -> np.ndarray:
    held = np.zeros(plan.nodes, np.int64)
    for table in (plan.tables[number] for number in tables):
        everywhere = table.kind == DescriptorKind.REPLICATED
        held[slice(None) if everywhere else slice(table.owner, table.owner + table.owners)] += 1
    return held
