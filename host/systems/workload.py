"""Traffic of one mini-batch on a cluster: lookups, pooled vectors and keys between nodes."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import Samples, share_sizes
from host.systems.tally import Tally
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
    whole: non-empty bags, ``[requester]``. A bag counts once, even if several owners have rows.
    weights: keys that have a weight, ``[requester, owner]``.
    varies: whether bags of a table have different lengths, so that a host must be told how much it
        receives. One value for the mini-batch.
    repeats: ``(lookups, bags, whole, weights)`` without bags that equal the bag of their table in
        the preceding sample of the share, or None if all bags differ.
    by_dimension: for each dimension of a table, ascending, the counts of the tables of this
        dimension; empty if all tables have the same.
    found: results of functions of the mini-batch, see :func:`host.once.once`.
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
    weights: np.ndarray
    varies: bool = False
    repeats: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None
    by_dimension: tuple[tuple[int, "Workload"], ...] = ()
    found: dict[Hashable, Any] = field(init=False, default_factory=dict, repr=False)

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
        lookups, bags, whole, weights = self.repeats
        return replace(self, lookups=lookups, bags=bags, whole=whole, weights=weights, repeats=None,
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


def workload_of(samples: Samples, model: Model, plan: ShardPlan, tally: Tally | None = None,
                counted: np.ndarray | None = None) -> Workload:
    """Return the counts of a mini-batch whose samples are split over the nodes of ``plan``.

    ``tally``: its counts by table, which all plans with the same number of nodes share; by default
    it is counted here. ``counted``: tables that count, bool ``[tables]``; None for all tables.
    """
    tally = tally or Tally(samples, plan.nodes)
    shares = np.array(share_sizes(len(samples), plan.nodes))
    lengths, plain = samples.bag_lengths, tally.counts
    varies = bool(len(lengths) and (lengths != lengths[0]).any())
    weighted = np.isin(np.arange(model.tables), model.weighted_tables)

    def part(tables: np.ndarray) -> Workload:
        """Return the counts of ``tables``, bool ``[tables]``."""
        spread, heavy = (_Spread(plan, tally, of) for of in (tables, tables & weighted))
        bags, new = plain.bags[:, tables].sum(axis=1), plain.new_bags[:, tables].sum(axis=1)
        return Workload(
            model, plan, shares, spread.pairs("keys"), spread.pairs("bags"),
            spread.pairs("distinct"), spread.unique(), _tables_held(plan, np.flatnonzero(tables)),
            int(plain.unique[tables].sum()), bags, heavy.pairs("keys"), varies,
            (spread.pairs("new_keys"), spread.pairs("new_bags"), new, heavy.pairs("new_keys"))
            if (new < bags).any() else None)

    counted = np.ones(model.tables, bool) if counted is None else counted
    found = part(counted)
    dimensions = np.array(model.table_dimensions)
    if len(set(model.table_dimensions)) == 1:
        return found
    return replace(found, by_dimension=tuple(
        (int(dimension), part(counted & (dimensions == dimension)))
        for dimension in np.unique(dimensions)))


class _Spread:
    """Counts of some tables by requester and owner.

    Parameters: ``plan``; ``tally``; ``tables``, bool ``[tables]``.
    """

    def __init__(self, plan: ShardPlan, tally: Tally, tables: np.ndarray):
        self._plan, self._tally = plan, tally
        kinds = np.array([table.kind for table in plan.tables])
        owner = np.array([table.owner for table in plan.tables])
        self._whole = np.zeros((len(kinds), plan.nodes), np.int64)  # table at owner
        whole = np.flatnonzero(tables & (kinds == DescriptorKind.TABLE))
        self._whole[whole, owner[whole]] = 1
        self._copied = tables & (kinds == DescriptorKind.REPLICATED)
        self._hashed: dict[tuple[int, int], list[int]] = {}
        for number in np.flatnonzero(tables & (kinds == DescriptorKind.ROW)).tolist():
            table = plan.tables[number]
            self._hashed.setdefault((table.owner, table.owners), []).append(number)

    def pairs(self, name: str) -> np.ndarray:
        """Return a member of `Counts`, ``[requester, owner]``."""
        own = getattr(self._tally.counts, name)
        found = own @ self._whole + np.diag(own[:, self._copied].sum(axis=1))
        for (first, owners), tables in self._hashed.items():
            found[:, first:first + owners] += getattr(
                self._tally.hashed(owners), name)[:, tables].sum(axis=1)
        return found

    def unique(self) -> np.ndarray:
        """Return the distinct keys of the mini-batch, ``[owner]``."""
        counts = self._tally.counts
        found = counts.unique @ self._whole + counts.distinct[:, self._copied].sum(axis=1)
        for (first, owners), tables in self._hashed.items():
            found[first:first + owners] += self._tally.hashed(owners).unique[tables].sum(axis=0)
        return found


def _tables_held(plan: ShardPlan, tables: np.ndarray) -> np.ndarray:
    held = np.zeros(plan.nodes, np.int64)
    for table in (plan.tables[number] for number in tables):
        everywhere = table.kind == DescriptorKind.REPLICATED
        held[slice(None) if everywhere else slice(table.owner, table.owner + table.owners)] += 1
    return held
