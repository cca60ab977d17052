"""Work of each mini-batch of a trace: lookups, traffic, sums of gradients, and updated rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from host.batching import MiniBatch
from host.placement.sets import NodeCaches, set_of
from host.placement.shard import ShardPlan, key_hash
from host.samples import Samples, first_lookups
from host.systems import Workload, workload_of
from host.systems.bl_tuned import Tuning
from host.systems.tables import INDEX, vector_bytes
from rtl.config import NicConfig
from sim.evaluation.trace import Trace

__all__ = ["TERMS", "Pass", "Reduction", "Updates", "Workloads", "all_reduce_traffic",
           "gradient_traffic", "reduction", "reductions", "software_traffic", "totalled", "updates",
           "updates_of_trace", "workloads"]


class Workloads:
    """What each measured mini-batch of a trace asks of the nodes of a plan. Compared by identity.
    """

    def __init__(self, trace: Trace, plan: ShardPlan):
        self._trace, self._plans = trace, {0: plan}
        self._made: dict[tuple[int, int], Workload] = {}

    @property
    def plain(self) -> list[Workload]:
        """Each mini-batch with tables placed as for all systems."""
        return self.copied(0)

    @property
    def extremes(self) -> tuple[int, ...]:
        """Numbers of mini-batches between which all others lie: the graph algorithm forms similar
        ones first and what is left last; in file order any is as good as another."""
        count = len(self._trace.measured)
        return (0,) if self._trace.of.batching == "file" else tuple(dict.fromkeys((0, count - 1)))

    def copied(self, rows: int) -> list[Workload]:
        """Each mini-batch with tables of at most ``rows`` rows copied to every node and the others
        dealt again; 0 for none."""
        return [self.one_copied(rows, number) for number in range(len(self._trace.measured))]

    def one_copied(self, rows: int, number: int) -> Workload:
        """Mini-batch ``number`` of :meth:`copied`."""
        if rows not in self._plans:
            self._plans[rows] = self._plans[0].with_copies(rows)
        if (rows, number) not in self._made:
            self._made[rows, number] = workload_of(
                self._trace.measured[number].samples, self._trace.model, self._plans[rows])
        return self._made[rows, number]


@lru_cache(maxsize=8)
def workloads(trace: Trace, plan: ShardPlan) -> Workloads:
    """Return what each measured mini-batch asks of the nodes of ``plan``."""
    return Workloads(trace, plan)


TERMS = 2
"""Vectors of float32 that an exact sum of several leaves as: 24 bits of it fit the first, and the
rest of a sum of like numbers the second."""


class Pass(NamedTuple):
    """A pass of an owner's table: the ``rows`` that it finishes, and the ``partials`` that come to
    it, those that it spills included."""

    rows: int
    partials: int


@dataclass(frozen=True)
class Reduction:
    """The sums of a mini-batch.

    Members
    -------
    sums: vectors that each node's local table is read out to, ``[requester]``: one for a key with
        a single gradient, `TERMS` for one with several.
    partials: vectors that go from each to each, ``[requester, owner]``: these sums, and each
        gradient of the other keys.
    passes: of each owner.
    """

    sums: np.ndarray
    partials: np.ndarray
    passes: tuple[tuple[Pass, ...], ...]


@lru_cache(maxsize=8)
def reductions(trace: Trace, plan: ShardPlan, config: NicConfig) -> tuple[Reduction, ...]:
    """Return the sums of each measured mini-batch of a trace."""
    return tuple(reduction(batch.samples, plan, config) for batch in trace.measured)


def reduction(samples: Samples, plan: ShardPlan, config: NicConfig) -> Reduction:
    """Find for each key whether it has an entry of the local table, and its pass at the owner.

    A set takes the keys that come first, and keeps them until it is read out
    (:class:`rtl.gradient.key_table.KeyTable`). Gradients come in the order of the samples; at an
    owner, those of all nodes at the same rate, and behind them the sums of what they held.
    """
    nodes, ways = plan.nodes, config.gradient_ways
    requester = samples.requesters(nodes)
    owner = plan.owner_of(samples.tables, samples.rows, requester)
    hashes = key_hash(samples.tables, samples.rows).astype(np.int64)
    _, keys = np.unique(samples.keys, return_inverse=True)

    summed, partials = np.zeros(nodes, np.int64), np.zeros((nodes, nodes), np.int64)
    came: list[list[np.ndarray]] = []  # key, when and lookup of each partial
    for node in range(nodes):
        mine = np.flatnonzero(requester == node)
        sets = set_of(hashes[mine], config.local_gradient_keys // ways)
        held = _turn(keys[mine], sets) < ways
        _, first, many = np.unique(keys[mine], return_index=True, return_counts=True)
        # The table is read out set by set, behind the node's last gradient.
        order = np.lexsort((first, sets[first]))
        order = order[held[first[order]]]
        sums = np.repeat(first[order], np.where(many[order] > 1, TERMS, 1))
        alone = np.flatnonzero(~held)
        summed[node] = len(sums)
        went = np.concatenate([alone, sums])
        when = np.concatenate([alone, len(mine) + np.arange(len(sums))])
        partials[node] = np.bincount(owner[mine[went]], minlength=nodes)
        came.append([when, mine[went]])
    when, which = (np.concatenate(parts) for parts in zip(*came))
    in_order = which[np.argsort(when, kind="stable")]
    passes = tuple(_passes(keys[of], set_of(hashes[of], config.global_gradient_keys // ways), ways)
                   for of in _split(in_order, owner[in_order], nodes))
    return Reduction(summed, partials, passes)


def _split(items: np.ndarray, group: np.ndarray, groups: int) -> Iterator[np.ndarray]:
    return (items[group == number] for number in range(groups))


def _turn(keys: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """Return, for each of several keys in order, how many other keys of its set came first."""
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    of = sets[first]
    order = np.lexsort((first, of))
    begins = np.flatnonzero(np.diff(of[order], prepend=-1))
    turn = np.empty(len(first), np.int64)
    turn[order] = np.arange(len(order)) - np.repeat(begins, np.diff([*begins, len(order)]))
    return turn[which]


def _passes(keys: np.ndarray, sets: np.ndarray, ways: int) -> tuple[Pass, ...]:
    """Return the passes of partials with ``keys`` that come in order."""
    if not len(keys):
        return ()
    number = _turn(keys, sets) // ways
    _, first = np.unique(keys, return_index=True)
    rows, partials = (np.bincount(of, minlength=int(number.max()) + 1)
                      for of in (number[first], number))
    return tuple(Pass(int(new), int(left)) for new, left in zip(
        rows, partials[::-1].cumsum()[::-1]))


@dataclass(frozen=True)
class Updates:
    """Rows to be updated, ``rows``, and those of them that no cache holds, ``misses``.

    Both ``[mini-batches, owners]``.
    """

    rows: np.ndarray
    misses: np.ndarray

    def to_json(self) -> dict[str, float]:
        """Return both of the mean mini-batch, all nodes."""
        return {name: float(counts.sum(axis=1).mean())
                for name, counts in (("rows", self.rows), ("misses", self.misses))}


@lru_cache(maxsize=8)
def updates_of_trace(trace: Trace, plan: ShardPlan, rows: int, ways: int,
                     policy: str = "lru") -> Updates:
    """Count those of the measured mini-batches of a trace; see :func:`updates`."""
    return updates(trace.batches, range(trace.warmup, len(trace.batches)), plan, rows, ways, policy)


def updates(batches: Sequence[MiniBatch], measured: Iterable[int], plan: ShardPlan, rows: int,
            ways: int, policy: str = "lru") -> Updates:
    """Count the rows that each measured mini-batch updates, and those its caches have evicted.

    The forward pass looks every key of a mini-batch up in the local cache of its owner; when the
    gradients come, a row may have been evicted by one that was looked up after it. Counted from the
    accesses, in the order of the samples and with the sets of the NIC, as ``sim hitrate`` does and
    with its bounds; ``update_misses`` of ``sim train`` counts the same in RTL.

    Parameters
    ----------
    batches: from caches that are empty. measured: the numbers of those that count.
    plan: of the tables over the nodes. rows, ways, policy: of each node's cache; 0 rows hold
        nothing.
    """
    caches = NodeCaches(rows // ways, ways, plan.nodes, policy) if rows else None
    counted, found = frozenset(measured), []
    for number, batch in enumerate(batches):
        samples = batch.samples
        first = first_lookups(samples)
        tables, of_table, keys = samples.tables[first], samples.rows[first], samples.keys[first]
        owner, hashes = plan.owner_of(tables, of_table), key_hash(tables, of_table)
        held = np.zeros(len(keys), bool)
        if caches is not None:
            caches.access(owner, hashes, keys)
        if number in counted:
            if caches is not None:
                held = caches.held(owner, hashes, keys)
            found.append([np.bincount(of, minlength=plan.nodes) for of in (owner, owner[~held])])
    return Updates(*(np.array(counts) for counts in zip(*found)))


MTU_PAYLOAD = 1472
"""Bytes of a packet's payload: UDP in an MTU of 1,500."""

Traffic = dict[str, dict[str, float]]


def software_traffic(work: Sequence[Workload], training: bool,
                     tuning: Tuning | None = None) -> Traffic:
    """Return bytes and packets per mini-batch, all nodes, of what software exchanges."""
    dedupe = tuning is not None and tuning.dedupe
    kinds = {"lookups": [], "vectors": []} | ({"gradients": []} if training else {})
    for w in work:
        vectors = vector_bytes(w) * (w.requested if dedupe else w.bags)
        kinds["lookups"].append(INDEX * (w.requested if dedupe else w.lookups + w.bags))
        kinds["vectors"].append(vectors)
        if training:
            kinds["gradients"].append(vectors)
    return {kind: _count(np.array(messages)) for kind, messages in kinds.items()}


def gradient_traffic(work: Sequence[Workload],
                     reduced: Sequence[Reduction] | None = None) -> dict[str, float]:
    """Return bytes and packets of gradients: those of bags, or the partial sums of ``reduced``."""
    vectors = [w.bags for w in work] if reduced is None else [sums.partials for sums in reduced]
    return _count(np.array([vector_bytes(w) * of for w, of in zip(work, vectors)]))


def all_reduce_traffic(work: Sequence[Workload]) -> dict[str, float]:
    """Return bytes and packets of a ring over the MLPs' gradients."""
    w = work[0]
    size = 2 * (w.nodes - 1) * 4 * w.model.mlp_parameters
    return {"bytes": float(size), "packets": float(-(-size // MTU_PAYLOAD))}


def totalled(traffic: Traffic) -> Traffic:
    """Return ``traffic`` with the sum of all kinds as ``total``."""
    return traffic | {"total": {unit: sum(kind[unit] for kind in traffic.values())
                                for unit in ("bytes", "packets")}}


def _count(messages: np.ndarray) -> dict[str, float]:
    """Count messages, bytes ``[mini-batches, from, to]``, per mini-batch."""
    crossing = messages * (1 - np.eye(messages.shape[1], dtype=np.int64))
    return {"bytes": float(crossing.sum() / len(messages)),
            "packets": float((-(-crossing // MTU_PAYLOAD)).sum() / len(messages))}
