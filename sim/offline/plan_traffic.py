"""Traffic of a plan: bytes on PCIe and network, lookups, and GPU rows of each node.

Samples are shared among the nodes as in a run, and every lookup goes to its owner in the
`ShardPlan`, without simulation. The fill of packets depends on timing. Their bytes are therefore
counted in two ways:

- *full*: a packet leaves when it is full or its mini-batch ends; with several mini-batches in
  flight, vectors of two mini-batches may share a packet. This is a lower bound for any run.
- *expected*: a packet also leaves when its timeout expires, with all parts at full speed: a
  requester sends a slot per cycle, an owner serves a lookup and sends a beat per cycle. A NIC that
  waits for PCIe, GPU or buffer space sends emptier packets.

Packets that carry only credit are left out.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from host.placement.shard import ShardPlan
from host.samples import Samples
from rtl.config import LANES, beats_of
from rtl.formats import BEAT_BYTES
from sim.offline.plan_host import share_bytes
from sim.offline.plan_packing import HEADER, TAG, Packing, packets

__all__ = ["Traffic"]


class Traffic:
    """Traffic of each node of a cluster, summed over mini-batches.

    Parameters
    ----------
    plan: the owners of the rows.
    packing: the packet capacities of the NIC.
    merge: whether vectors of two mini-batches may share a packet.

    Members
    -------
    batches, samples: mini-batches and samples added so far.
    with_remote, with_misses: mini-batches with a lookup at another node, or with a miss.
    counts: sums by name, float64 ``[nodes]``: ``lookups`` answered by an owner, ``remote`` lookups
        sent to others, ``answered`` lookups of others, ``samples`` held, ``slots`` reserved in the
        hold buffer, ``bags`` pooled, ``unique`` and ``misses`` of the local cache; with
        ``deliver=unique`` the ``indices`` of slots, and ``slots`` and ``bags`` count the unique
        vectors and the end of the share; and with the prefix ``full_``
        or ``expected_``: ``to_nic``, ``from_nic``, ``out``, ``in`` in bytes, ``out_frames``,
        ``in_frames``, and ``lists`` of rows for the GPU, each of which causes at most one gather.
    most: maximum over mini-batches and nodes of ``unique`` keys, ``slots`` and ``share_slots``
        (all keys and empty bags of a share), and over samples of ``sample_slots``.
    """

    def __init__(self, plan: ShardPlan, packing: Packing, merge: bool):
        self._plan, self._packing, self._merge = plan, packing, merge
        self.batches = self.samples = self.with_remote = self.with_misses = 0
        self.counts = {
            f"{kind}_{name}": np.zeros(plan.nodes) for kind in ("full", "expected") for name in (
                "to_nic", "from_nic", "out", "in", "out_frames", "in_frames", "lists")}
        self.most: Counter[str] = Counter()

    def add(self, batch: Samples, owners: np.ndarray, entered: np.ndarray,
            missed: np.ndarray, asked: np.ndarray | None = None) -> None:
        """Add a mini-batch.

        Parameters
        ----------
        batch: its samples.
        owners: owner of each key.
        entered: ascending indices of the lookups that enter a local cache.
        missed: whether each of these is a miss.
        asked: ascending indices of the keys that are looked up, with ``deliver=unique``;
            ``entered`` are some of them. By default all.
        """
        nodes = self._plan.nodes
        shares = np.full(nodes, len(batch) // nodes, np.int64)
        shares[:len(batch) % nodes] += 1
        holder = np.repeat(np.arange(nodes), shares)
        slots = batch.slots
        node_slots = np.bincount(holder, slots, nodes).astype(np.int64)
        asker = np.repeat(holder, np.diff(batch.key_offsets))
        sent = self._sent(batch, node_slots, holder)
        reserved, bags = node_slots, shares * batch.table_count
        if asked is not None:
            asker, owners, sent = asker[asked], owners[asked], sent[asked]
            entered = np.searchsorted(asked, entered)
            # A place for each unique vector, and for the empty vector that ends the share.
            reserved = bags = np.bincount(asker, minlength=nodes) + (shares > 0)
            self._count("indices", node_slots)
        self.batches += 1
        self.samples += len(batch)
        self.with_remote += bool((asker != owners).any())
        self.with_misses += bool(missed.any())
        misses = np.bincount(owners[entered[missed]], minlength=nodes)
        unique = np.bincount(owners[entered], minlength=nodes)
        for name, value in (
                ("lookups", np.bincount(owners, minlength=nodes)),
                ("remote", np.bincount(asker[asker != owners], minlength=nodes)),
                ("answered", np.bincount(owners[asker != owners], minlength=nodes)),
                ("slots", reserved), ("samples", shares), ("bags", bags),
                ("unique", unique), ("misses", misses)):
            self._count(name, value)
        for name, value in (("unique", unique), ("slots", reserved), ("sample_slots", slots),
                            ("share_slots", node_slots)):
            self.most[name] = max(self.most[name], int(value.max(initial=0)))
        self._host_packets(shares, slots, batch.table_count, bags)
        for kind in ("full", "expected"):
            timed = kind == "expected"
            for node in range(nodes):
                self._lookups(kind, node, asker, owners, sent, timed)
                self._owner(kind, node, asker, owners, sent, entered[missed], timed)

    def _sent(self, batch: Samples, node_slots: np.ndarray, holder: np.ndarray) -> np.ndarray:
        """Return the cycle in which each lookup leaves its requester: int64 ``[keys]``."""
        lengths = np.maximum(batch.bag_lengths, 1).reshape(-1).astype(np.int64)
        keys = batch.bag_lengths.reshape(-1).astype(np.int64)
        # Slots before each bag on its own node; each key takes one more.
        before = np.cumsum(lengths) - lengths
        first = np.concatenate(([0], np.cumsum(node_slots)[:-1]))
        before -= np.repeat(first[holder], batch.table_count)
        place = np.arange(keys.sum()) - np.repeat(np.cumsum(keys) - keys, keys)
        return np.repeat(before, keys) + place

    def _host_packets(self, shares: np.ndarray, slots: np.ndarray, tables: int,
                      vectors: np.ndarray) -> None:
        """Count packets of queries and answers.

        ``slots``: slots of each sample. ``vectors``: unique vectors delivered to each node.
        """
        for node, mine in enumerate(np.split(slots, np.cumsum(shares)[:-1])):
            for kind in ("full", "expected") if len(mine) else ():
                moved = share_bytes(self._packing, mine, tables, int(vectors[node]),
                                    kind == "expected")
                self._add(f"{kind}_to_nic", node, moved.to_nic)
                self._add(f"{kind}_from_nic", node, moved.from_nic)

    def _lookups(self, kind: str, node: int, asker: np.ndarray, owners: np.ndarray,
                 sent: np.ndarray, timed: bool) -> None:
        """Count the lookups that ``node`` sends to others."""
        packing = self._packing
        timeout = packing.runtime.lookup_timeout + packing.lateness if timed else None
        for owner in range(self._plan.nodes):
            if owner != node:
                times = sent[(asker == node) & (owners == owner)]
                sizes = packets(times, packing.lookups, timeout)
                self._frames(kind, node, owner, len(sizes), packing.record_bytes(sizes))

    def _owner(self, kind: str, node: int, asker: np.ndarray, owners: np.ndarray,
               sent: np.ndarray, missed: np.ndarray, timed: bool) -> None:
        """Count the vectors that ``node`` sends to others, and its requests to its GPU."""
        packing = self._packing
        own = np.flatnonzero(owners == node)
        own = own[np.argsort(sent[own], kind="stable")]
        served = _serialize(sent[own], 1)
        lists = packets(served[np.isin(own, missed)], packing.requests,
                        packing.runtime.request_timeout if timed else None)
        self._add(f"{kind}_lists", node, len(lists))
        self._add(f"{kind}_from_nic", node, packing.record_bytes(lists))
        self._add(f"{kind}_to_nic", node, packing.answer_bytes(lists))
        left = _serialize(served, beats_of(packing.dimension))
        timeout = packing.runtime.vector_timeout + packing.lateness if timed else None
        for requester in range(self._plan.nodes):
            if requester == node:
                continue
            times = left[asker[own] == requester]
            if self._merge and not timed:
                # Vectors that share a packet with another mini-batch are charged their share of it.
                count = len(times) / packing.vectors
                self._frames(kind, node, requester, count, BEAT_BYTES * (
                    count * (HEADER + TAG) + len(times) * packing.dimension / LANES))
            else:
                sizes = packets(times, packing.vectors, timeout)
                self._frames(kind, node, requester, len(sizes), packing.vector_bytes(sizes))

    def _frames(self, kind: str, source: int, destination: int, count: float,
                size: float) -> None:
        for node, way in ((source, "out"), (destination, "in")):
            self._add(f"{kind}_{way}", node, size)
            self._add(f"{kind}_{way}_frames", node, count)

    def _count(self, name: str, values: np.ndarray) -> None:
        self.counts[name] = self.counts.get(name, 0) + values.astype(float)

    def _add(self, name: str, node: int, value: float) -> None:
        self.counts[name][node] += value


def _serialize(times: np.ndarray, each: int) -> np.ndarray:
    """Return when units that arrive at ``times``, ascending, are done at ``each`` cycles a unit."""
    service = each * np.arange(len(times))
    return np.maximum.accumulate(times - service) + service if len(times) else times
