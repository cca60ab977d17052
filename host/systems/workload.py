"""Traffic of one mini-batch on a cluster: lookups, pooled vectors and keys between nodes."""

from dataclasses import dataclass, replace

import numpy as np

from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import Samples, share_sizes
from rtl.formats import DescriptorKind

__all__ = ["Workload", "workload_of"]


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
    by_dimension: tuple[tuple[int, "Workload"], ...] = ()

    @property
    def parts(self) -> tuple[tuple[int, "Workload"], ...]:
        """Values of a vector, and the counts of the tables of this dimension."""
        return self.by_dimension or ((self.model.width, self),)

    @property
    def nodes(self) -> int:
        """Nodes of the cluster."""
        return len(self.samples)

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
    _, number = np.unique(samples.keys, return_inverse=True)
    bag = np.repeat(np.arange(samples.bag_lengths.size), samples.bag_lengths.reshape(-1))
    lookups = requester, owner, number, bag
    whole = _counts(model, plan, len(samples), np.arange(model.tables), *lookups)
    dimensions = np.array(model.table_dimensions)
    if len(set(model.table_dimensions)) == 1:
        return whole
    return replace(whole, by_dimension=tuple(
        (int(dimension), _counts(
            model, plan, len(samples), np.flatnonzero(dimensions == dimension),
            *(of[dimensions[samples.tables] == dimension] for of in lookups)))
        for dimension in np.unique(dimensions)))


def _counts(model: Model, plan: ShardPlan, samples: int, tables: np.ndarray, requester: np.ndarray,
            owner: np.ndarray, key: np.ndarray, bag: np.ndarray) -> Workload:
    """Return the counts of lookups in ``tables``, given requester, owner, number of the key and
    number of the bag of each lookup."""
    nodes, pair = plan.nodes, requester * plan.nodes + owner
    return Workload(
        model, plan, np.array(share_sizes(samples, nodes)), _square(pair, nodes),
        _square(_groups(pair, bag), nodes), _square(_groups(pair, key), nodes),
        np.bincount(_groups(owner, key), minlength=nodes), _tables_held(plan, tables),
        len(np.unique(key)))


def _square(pairs: np.ndarray, nodes: int) -> np.ndarray:
    return np.bincount(pairs, minlength=nodes * nodes).reshape(nodes, nodes)


def _groups(group: np.ndarray, item: np.ndarray) -> np.ndarray:
    """Return the group of each distinct pair of a group and an item."""
    items = int(item.max(initial=0)) + 1
    return np.unique(group * np.int64(items) + item) // items


def _tables_held(plan: ShardPlan, tables: np.ndarray) -> np.ndarray:
    held = np.zeros(plan.nodes, np.int64)
    for table in (plan.tables[number] for number in tables):
        everywhere = table.kind == DescriptorKind.REPLICATED
        held[slice(None) if everywhere else slice(table.owner, table.owner + table.owners)] += 1
    return held
