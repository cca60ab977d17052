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
from dataclasses import replace

import numpy as np

from host.distinct import distinct
from host.placement.shard import ShardPlan
from host.samples import Samples
from rtl.bags.pool import BagPool
from rtl.config import LANES, beats_of
from rtl.formats import BEAT_BYTES, RECORDS_PER_BEAT
from sim.offline.plan_bags import Bags, BatchSlots
from sim.offline.plan_host import share_bytes
from sim.offline.plan_packing import HEADER, TAG, Packing, bag_packets, packets

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
        vectors and the end of the share; with owner-pooled tables, ``bags_out`` and ``bags_in`` of
        requesters and owners, ``bag_beats_in`` of their vectors, ``bag_segments_out`` and
        ``bag_segments_in``; if GPUs pool bags, ``gathered_bags``, ``gathered_keys`` and
        ``gathered_weights``; and with the prefix ``full_`` or ``expected_``: ``to_nic``,
        ``from_nic``, ``out``, ``in`` in bytes, ``out_frames``, ``in_frames``, and ``lists`` of rows
        for the GPU, each of which causes at most one gather. Slots, bags and packets to the host
        exclude bags that a node's own GPU pools.
    most: maximum over mini-batches and nodes of ``unique`` keys, ``slots`` and ``share_slots``
        (all keys and empty bags of a share), and over samples of ``sample_slots``.
    longest: keys of the longest bag of each table: int64 ``[tables]``.
    """

    def __init__(self, plan: ShardPlan, packing: Packing, merge: bool):
        self._plan, self._packing, self._merge = plan, packing, merge
        self.batches = self.samples = self.with_remote = self.with_misses = 0
        self.counts = {
            f"{kind}_{name}": np.zeros(plan.nodes) for kind in ("full", "expected") for name in (
                "to_nic", "from_nic", "out", "in", "out_frames", "in_frames", "lists")}
        self.most: Counter[str] = Counter()
        self.longest = np.zeros(len(plan.tables), np.int64)

    def add(self, batch: Samples, owners: np.ndarray, entered: np.ndarray,
            missed: np.ndarray, asked: np.ndarray) -> None:
        """Add a mini-batch.

        Parameters
        ----------
        batch: its samples.
        owners: owner of each key.
        entered: ascending indices of the lookups that enter a local cache.
        missed: whether each of these is a miss.
        asked: ascending indices of the keys that are looked up, of tables that pool at the
            requester; with ``deliver=unique`` only the first uses. ``entered`` are some of them.
        """
        nodes, runtime = self._plan.nodes, self._packing.runtime
        found = BatchSlots.of(batch, self._plan, bool(runtime.interaction))
        shares, node_slots, bags = found.shares, found.node_slots, found.bags
        asker, owners, sent = batch.requesters(nodes)[asked], owners[asked], found.sent[asked]
        entered = np.searchsorted(asked, entered)
        reserved, vectors = node_slots, shares * found.parts
        if runtime.deliver == "unique":
            # A place for each unique vector and bag, and for the empty vector that ends the share.
            reserved = vectors = np.bincount(asker, minlength=nodes) + (shares > 0) + np.bincount(
                bags.requester, minlength=nodes)
            self._count("indices", node_slots)
        foreign = bags[bags.requester != bags.owner]
        self.batches += 1
        self.samples += len(batch)
        np.maximum(self.longest, batch.bag_lengths.max(axis=0), out=self.longest)
        self.with_remote += bool((asker != owners).any()) or bool(len(foreign.words))
        self.with_misses += bool(missed.any()) or bool(len(bags.words))
        misses = np.bincount(owners[entered[missed]], minlength=nodes)
        unique = np.bincount(owners[entered], minlength=nodes)
        for name, value in (
                ("lookups", np.bincount(owners, minlength=nodes)),
                ("remote", np.bincount(asker[asker != owners], minlength=nodes)),
                ("answered", np.bincount(owners[asker != owners], minlength=nodes)),
                ("slots", reserved), ("samples", shares), ("bags", vectors),
                ("unique", unique), ("misses", misses)):
            self._count(name, value)
        if self._plan.gpus_pool:
            self._count_bags(found, foreign)
        for name, value in (("unique", unique), ("slots", reserved), ("sample_slots", found.slots),
                            ("share_slots", node_slots)):
            self.most[name] = max(self.most[name], int(value.max(initial=0)))
        self._host_packets(found, vectors)
        for kind in ("full", "expected"):
            timed = kind == "expected"
            for node in range(nodes):
                self._lookups(kind, node, asker, owners, sent, timed)
                self._owner(kind, node, asker, owners, sent, entered[missed], timed)
                if self._plan.pools_at_owner:
                    self._bags(kind, node, foreign, timed)
                    self._bag_owner(kind, node, bags[bags.owner == node], timed)

    def _count_bags(self, found: BatchSlots, foreign: Bags) -> None:
        nodes, bags = self._plan.nodes, found.bags
        for name, at, weights in () if not self._plan.pools_at_owner else (
                ("bags_out", foreign.requester, None), ("bags_in", bags.owner, None),
                ("bag_beats_in", bags.owner, bags.beats),
                ("bag_segments_out", bags.requester, bags.segments),
                ("bag_segments_in", bags.owner, bags.segments)):
            self._count(name, np.bincount(at, weights, nodes))
        self._count("gathered_bags", found.own_bags + np.bincount(bags.owner, minlength=nodes))
        self._count("gathered_keys", found.own_keys + np.bincount(bags.owner, bags.keys, nodes))
        self._count("gathered_weights",
                    found.own_weights + np.bincount(bags.owner, bags.weights, nodes))

    def _host_packets(self, found: BatchSlots, vectors: np.ndarray) -> None:
        """Count packets of queries and answers.

        ``vectors``: unique vectors delivered to each node.
        """
        ends = np.cumsum(found.shares)[:-1]
        for node, (slots, words) in enumerate(zip(np.split(found.slots, ends),
                                                  np.split(found.words, ends))):
            for kind in ("full", "expected") if len(slots) and found.parts[node] else ():
                moved = share_bytes(self._packing, slots, int(found.parts[node]),
                                    int(vectors[node]), kind == "expected", words)
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
        served = _serialize(sent[own], np.ones(len(own), np.int64))
        lists = packets(served[np.isin(own, missed)], packing.requests,
                        packing.runtime.request_timeout if timed else None)
        self._add(f"{kind}_lists", node, len(lists))
        self._add(f"{kind}_from_nic", node, packing.record_bytes(lists))
        self._add(f"{kind}_to_nic", node, packing.answer_bytes(lists))
        left = _serialize(served, np.full(len(served), beats_of(packing.dimension)))
        self._vectors(kind, node, asker[own], left, timed, packing)

    def _bags(self, kind: str, node: int, foreign: Bags, timed: bool) -> None:
        """Count the packets of bags that ``node`` sends to others."""
        packing = self._packing
        # Slots leave without a pause.
        timeout = BagPool.AGES * packing.runtime.bag_timeout + packing.lateness if timed else None
        for owner in range(self._plan.nodes):
            if owner != node:
                mine = foreign[(foreign.requester == node) & (foreign.owner == owner)]
                words, _ = bag_packets(mine.sent, mine.words, packing.bag_words, timeout)
                self._frames(kind, node, owner, len(words), packing.record_bytes(words))

    def _bag_owner(self, kind: str, node: int, bags: Bags, timed: bool) -> None:
        """Count the lists of bags that ``node`` sends to its GPU, and the vectors of others."""
        packing = self._packing
        bags = bags[np.argsort(bags.sent, kind="stable")]
        served = _serialize(bags.sent, bags.segments)
        words, lists = bag_packets(
            served, bags.words, RECORDS_PER_BEAT * packing.config.net_payload_beats,
            packing.runtime.request_timeout if timed else None, packing.listed_bags)
        self._add(f"{kind}_lists", node, len(lists))
        self._add(f"{kind}_from_nic", node, packing.record_bytes(words))
        left, of = _serialize(served, bags.beats), np.repeat(np.arange(len(lists)), lists)
        for beats in distinct(bags.beats):
            # A packet has vectors of one size.
            mine = bags.beats == beats
            short = replace(packing, dimension=min(packing.dimension, LANES * int(beats)))
            self._add(f"{kind}_to_nic", node, short.answer_bytes(np.bincount(of[mine])))
            self._vectors(kind, node, bags.requester[mine], left[mine], timed, short)

    def _vectors(self, kind: str, node: int, requesters: np.ndarray, left: np.ndarray,
                 timed: bool, packing: Packing) -> None:
        """Count the vectors that ``node`` sends to other ``requesters`` in cycles ``left``."""
        timeout = packing.runtime.vector_timeout + packing.lateness if timed else None
        for requester in range(self._plan.nodes):
            if requester == node:
                continue
            times = left[requesters == requester]
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


def _serialize(times: np.ndarray, each: np.ndarray) -> np.ndarray:
    """Return when units that arrive at ``times``, ascending, are served; each takes ``each`` cycles
    after the unit before it."""
    service = np.cumsum(each) - each
    return np.maximum.accumulate(times - service) + service if len(times) else times
