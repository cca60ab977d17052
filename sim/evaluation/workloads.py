"""Work of each mini-batch of a trace: lookups, traffic, sums of gradients, and updated rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from host.batching import MiniBatch
from host.placement.sets import NodeCaches, set_of
from host.placement.shard import ShardPlan, key_hash
from host.samples import Samples, first_lookups
from host.systems import Workload, workload_of
from host.systems.bl_tuned import Tuning, exchanged
from host.systems.tables import vector_bytes
from rtl.config import NicConfig
from sim.evaluation.trace import Trace, of_trace, tally_of

__all__ = ["TERMS", "Pass", "Reduction", "Updates", "Workloads", "all_reduce_traffic",
           "gradient_traffic", "reduction", "reductions", "software_traffic", "totalled", "updates",
           "updates_of_trace", "workloads"]


class Workloads:
    """Work of each measured mini-batch of a trace, for the nodes of a plan. Compared by identity.
    """

    def __init__(self, trace: Trace, plan: ShardPlan):
        self._trace, self._plans = trace, {0: plan}
        self._made: dict[tuple[int, int], Workload] = {}

    @property
    def plain(self) -> list[Workload]:
        """Each mini-batch with the placement that all systems share."""
        return self.copied(0)

    @property
    def extremes(self) -> tuple[int, ...]:
        """Numbers of the mini-batches with the most and the least similarity. The graph algorithm
        forms similar mini-batches first. In file order, any mini-batch is representative."""
        count = len(self._trace.measured)
        return (0,) if self._trace.of.batching == "file" else tuple(dict.fromkeys((0, count - 1)))

    def copied(self, rows: int) -> list[Workload]:
        """Each mini-batch with tables of at most ``rows`` rows copied to every node and the others
        placed again; 0 copies no table."""
        return [self.one_copied(rows, number) for number in range(len(self._trace.measured))]

    def one_copied(self, rows: int, number: int) -> Workload:
        """Mini-batch ``number`` of :meth:`copied`."""
        if rows not in self._plans:
            self._plans[rows] = self._plans[0].with_copies(rows)
        if (rows, number) not in self._made:
            plan = self._plans[rows]
            self._made[rows, number] = workload_of(
                self._trace.measured[number].samples, self._trace.model, plan,
                tally_of(self._trace, number, plan.nodes))
        return self._made[rows, number]


@of_trace
def workloads(trace: Trace, plan: ShardPlan) -> Workloads:
    """Return the work of each measured mini-batch for the nodes of ``plan``."""
    return Workloads(trace, plan)


TERMS = 2
"""Most float32 vectors of an exact sum: the first holds 24 bits, the second the rest of a sum of
similar values."""


class Pass(NamedTuple):
    """A pass of an owner's table: the ``rows`` that it finishes, and the ``partials`` that arrive
    for it, including spilled ones."""

    rows: int
    partials: int


@dataclass(frozen=True)
class Reduction:
    """Gradient sums of a mini-batch.

    Members
    -------
    sums: vectors read from each node's local table, ``[requester]``: one for a key with a single
        gradient, `TERMS` for a key with several.
    partials: vectors between nodes, ``[requester, owner]``: these sums, and each gradient of the
        other keys.
    passes: passes of each owner.
    """

    sums: np.ndarray
    partials: np.ndarray
    passes: tuple[tuple[Pass, ...], ...]


@of_trace
def reductions(trace: Trace, plan: ShardPlan, config: NicConfig) -> tuple[Reduction, ...]:
    """Return the sums of each measured mini-batch of a trace."""
    return tuple(reduction(batch.samples, plan, config) for batch in trace.measured)


def reduction(samples: Samples, plan: ShardPlan, config: NicConfig) -> Reduction:
    """Determine for each key whether it has an entry in the local table, and its pass at the owner.

    A set holds the keys that arrive first, until it is read out
    (:class:`rtl.gradient.key_table.KeyTable`). Gradients arrive in sample order. At an owner, the
    nodes' gradients arrive at the same rate, and the sums follow.
    """
    nodes, ways = plan.nodes, config.gradient_ways
    requester = samples.requesters(nodes)
    owner = plan.owner_of(samples.tables, samples.rows, requester)
    hashes = key_hash(samples.tables, samples.rows).astype(np.int64)
    _, keys = np.unique(samples.keys, return_inverse=True)

    summed, partials = np.zeros(nodes, np.int64), np.zeros((nodes, nodes), np.int64)
    came: list[list[np.ndarray]] = []  # time and lookup of each partial
    for node in range(nodes):
        mine = np.flatnonzero(requester == node)
        sets = set_of(hashes[mine], config.local_gradient_keys // ways)
        held = _turn(keys[mine], sets) < ways
        _, first, many = np.unique(keys[mine], return_index=True, return_counts=True)
        # The table is read out set by set, after the node's last gradient.
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
    """Return the passes of partials with ``keys``, in order of arrival."""
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
    """Updated rows, ``rows``, and updated rows that miss the cache, ``misses``.

    Both ``[mini-batches, owners]``.
    """

    rows: np.ndarray
    misses: np.ndarray

    def to_json(self) -> dict[str, float]:
        """Return both for the mean mini-batch, summed over nodes."""
        return {name: float(counts.sum(axis=1).mean())
                for name, counts in (("rows", self.rows), ("misses", self.misses))}


@of_trace
def updates_of_trace(trace: Trace, plan: ShardPlan, rows: int, ways: int,
                     policy: str = "lru") -> Updates:
    """Return :func:`updates` of the measured mini-batches of a trace."""
    return updates(trace.batches, range(trace.warmup, len(trace.batches)), plan, rows, ways, policy)


def updates(batches: Sequence[MiniBatch], measured: Iterable[int], plan: ShardPlan, rows: int,
            ways: int, policy: str = "lru") -> Updates:
    """Count the rows that each measured mini-batch updates, and those that the cache has evicted.

    The forward pass looks up every key in its owner's local cache. When the gradients arrive, a
    later lookup may have evicted the row. The count uses the accesses in sample order and the NIC's
    sets, like ``sim hitrate``. ``update_misses`` of ``sim train`` is the same count in RTL.

    Parameters
    ----------
    batches: mini-batches, starting with empty caches. measured: numbers of the counted
        mini-batches.
    plan: placement of the tables. rows, ways, policy: cache of each node; 0 rows disable it.
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


_PLAIN = Tuning(dedupe=False)


def software_traffic(work: Sequence[Workload], training: bool, tuning: Tuning = _PLAIN,
                     gpus: int = 1) -> Traffic:
    """Return bytes and packets that software exchanges per mini-batch between nodes of ``gpus``
    GPUs, all nodes."""
    kinds = {"lookups": [], "vectors": []} | ({"gradients": []} if training else {})
    for w in work:
        keys, vectors = exchanged(w, tuning)
        kinds["lookups"].append(keys)
        kinds["vectors"].append(vectors)
        if training:
            kinds["gradients"].append(vectors)
    return {kind: _count(np.array(messages), gpus) for kind, messages in kinds.items()}


def gradient_traffic(work: Sequence[Workload],
                     reduced: Sequence[Reduction] | None = None) -> dict[str, float]:
    """Return bytes and packets of gradients: of bags, or of the partial sums of ``reduced``."""
    vectors = [w.bags for w in work] if reduced is None else [sums.partials for sums in reduced]
    return _count(np.array([vector_bytes(w) * of for w, of in zip(work, vectors)]))


def all_reduce_traffic(work: Sequence[Workload], gpus: int = 1) -> dict[str, float]:
    """Return bytes and packets between nodes of ``gpus`` GPUs of a ring all-reduce of the MLPs'
    gradients."""
    w = work[0]
    leave = w.nodes // gpus if w.nodes > gpus else 0  # endpoints whose successor is at another node
    size = 2 * (w.nodes - 1) * 4 * w.model.mlp_parameters * leave // w.nodes
    return {"bytes": float(size), "packets": float(-(-size // MTU_PAYLOAD))}


def totalled(traffic: Traffic) -> Traffic:
    """Return ``traffic`` with the sum of all kinds as ``total``."""
    return traffic | {"total": {unit: sum(kind[unit] for kind in traffic.values())
                                for unit in ("bytes", "packets")}}


def _count(messages: np.ndarray, gpus: int = 1) -> dict[str, float]:
    """Count messages between nodes, bytes ``[mini-batches, from, to]``, per mini-batch."""
    node = np.arange(messages.shape[1]) // gpus
    crossing = messages * (node[:, None] != node)
    return {"bytes": float(crossing.sum() / len(messages)),
            "packets": float((-(-crossing // MTU_PAYLOAD)).sum() / len(messages))}
