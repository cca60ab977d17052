"""Traffic of a plan: bytes on PCIe and network, lookups, and GPU rows of each node.

Samples are shared among the nodes as in a run, and every lookup goes to the owner that the
`ShardPlan` names; nothing is simulated. The fill of packets depends on timing, so their bytes are
counted twice:

- *full*: a packet leaves when it is full or its mini-batch ends; with several mini-batches in
  flight, vectors of two of them may share a packet. No run moves fewer bytes.
- *expected*: a packet also leaves when its time-out expires, with all parts at full speed: a
  requester sends one slot per cycle, an owner serves one lookup and sends one beat per cycle. A NIC
  that waits for PCIe, GPU or buffer space sends emptier packets.

Packets that carry only credit are left out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from host.placement.shard import ShardPlan
from host.samples import Samples
from host.wire.packets import vectors_that_fit
from rtl.config import LANES, NicConfig, beats_of
from rtl.formats import BEAT_BYTES, RECORDS_PER_BEAT, TAGS_PER_BEAT
from sim.job.settings import Runtime
from sim.offline.plan_interaction import InteractionCost

__all__ = ["Packing", "Traffic", "packets"]

_HEADER, _TAG = 1, 1
"""Beats of a packet's header, and of the tags of its vectors."""


def packets(times: np.ndarray, most: int, timeout: float | None = None) -> np.ndarray:
    """Return the number of units in each packet (int64); units arrive at ``times``, ascending.

    A packet takes at most ``most`` units, at least 1. With a ``timeout``, its last unit arrives
    less than that after its first; a ``timeout`` of 0 allows one unit.
    """
    if timeout is None:
        whole, rest = divmod(len(times), most)
        return np.array([most] * whole + [rest] * (rest > 0), np.int64)
    ends = np.searchsorted(times, times + timeout, side="left")
    sizes, at = [], 0
    while at < len(times):
        end = max(at + 1, min(int(ends[at]), at + most))
        sizes.append(end - at)
        at = end
    return np.array(sizes, np.int64)


@dataclass(frozen=True)
class Packing:
    """Capacity of each kind of packet, for a NIC in a cluster of ``nodes`` nodes.

    Members
    -------
    config, runtime: of the NIC.
    nodes: of the cluster.
    dimension: of the model; vectors of fewer than 16 values share beats.
    interaction: its cost if it is on the NIC, else None.

    A vector too long for a packet of this NIC counts as one packet; the NIC does not support its
    dimension anyway.
    """

    config: NicConfig
    runtime: Runtime
    nodes: int
    dimension: int
    interaction: InteractionCost | None = None

    @property
    def lookups(self) -> int:
        """Records of a lookups packet: limited by frame payload and by credit at the owner."""
        share = self.config.lookup_beats // self.nodes
        window = max(1, share - share // 8)
        return RECORDS_PER_BEAT * min(self.config.net_payload_beats, window)

    @property
    def vectors(self) -> int:
        """Vectors of a vectors packet, after its tag beat."""
        return min(TAGS_PER_BEAT, self._vectors_in(self.config.net_payload_beats))

    @property
    def requests(self) -> int:
        """Records of a request list to the GPU."""
        return min(self.runtime.request_batch, RECORDS_PER_BEAT * self.config.net_payload_beats)

    @property
    def answers(self) -> int:
        """Vectors of a packet from the GPU."""
        return max(1, vectors_that_fit(self.dimension, self.config.host_payload_beats))

    @property
    def results(self) -> int:
        """Pooled vectors of a packet to the host."""
        return self._vectors_in(self.config.host_payload_beats)

    @property
    def queries(self) -> int:
        """Records of a packet of queries: the host uses at most half of the NIC's buffer."""
        return RECORDS_PER_BEAT * min(self.config.host_payload_beats, self.config.query_beats // 2)

    @property
    def lateness(self) -> float:
        """Mean cycles by which packets close late, because destinations are checked in turn."""
        return (1 << (self.config.nodes - 1).bit_length()) / 2

    def _vectors_in(self, beats: int) -> int:
        """Return the vectors that fit a payload of ``beats``, one of which is the tag beat."""
        return max(1, (beats - _TAG) * LANES // self.dimension)

    def record_bytes(self, sizes: np.ndarray) -> int:
        """Return the bytes of packets of records."""
        return BEAT_BYTES * int((_HEADER - (-sizes // RECORDS_PER_BEAT)).sum())

    def vector_bytes(self, sizes: np.ndarray) -> int:
        """Return the bytes of packets of vectors with one tag beat."""
        return BEAT_BYTES * int((_HEADER + _TAG - (-sizes * self.dimension // LANES)).sum())

    def answer_bytes(self, lists: np.ndarray) -> int:
        """Return the bytes of the GPU's answers to ``lists`` of rows, each answered on its own."""
        whole, rest = np.divmod(lists, self.answers)
        sizes = np.concatenate((np.full(int(whole.sum()), self.answers), rest[rest > 0]))
        return BEAT_BYTES * int((_HEADER - (-sizes // TAGS_PER_BEAT)
                                 - (-sizes * self.dimension // LANES)).sum())


class Traffic:
    """Traffic of each node of a cluster, summed over mini-batches.

    Parameters
    ----------
    plan: the owners of the rows.
    packing: the packet capacities of the NIC.
    merge: whether vectors of two mini-batches may share a packet.

    Members
    -------
    batches, samples: added so far. with_remote, with_misses: mini-batches in which some node asks
        another node, or its GPU.
    counts: sums by name, float64 ``[nodes]``: ``lookups`` answered by an owner, ``remote`` lookups
        sent to others, ``answered`` lookups of others, ``samples`` held, ``slots`` reserved,
        ``bags`` pooled, ``unique`` and ``misses`` of the local cache; and with the prefix ``full_``
        or ``expected_``: ``to_nic``, ``from_nic``, ``out``, ``in`` in bytes, ``out_frames``,
        ``in_frames``, and ``lists`` of rows for the GPU, each of which causes at most one gather.
    most: maximum over mini-batches and nodes of ``unique`` keys and ``slots``; and over samples of
        ``sample_slots``.
    """

    def __init__(self, plan: ShardPlan, packing: Packing, merge: bool):
        self._plan, self._packing, self._merge = plan, packing, merge
        self.batches = self.samples = self.with_remote = self.with_misses = 0
        self.counts = {
            f"{kind}_{name}": np.zeros(plan.nodes) for kind in ("full", "expected") for name in (
                "to_nic", "from_nic", "out", "in", "out_frames", "in_frames", "lists")}
        self.most: Counter[str] = Counter()

    def add(self, batch: Samples, owners: np.ndarray, entered: np.ndarray,
            missed: np.ndarray) -> None:
        """Add a mini-batch.

        Parameters
        ----------
        batch: its samples.
        owners: owner of each lookup.
        entered: ascending indices of the lookups that enter a local cache.
        missed: whether each of these is a miss.
        """
        nodes = self._plan.nodes
        shares = np.full(nodes, len(batch) // nodes, np.int64)
        shares[:len(batch) % nodes] += 1
        holder = np.repeat(np.arange(nodes), shares)
        slots = batch.slots
        node_slots = np.bincount(holder, slots, nodes).astype(np.int64)
        asker = np.repeat(holder, np.diff(batch.key_offsets))
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
                ("slots", node_slots), ("samples", shares),
                ("bags", shares * batch.table_count),
                ("unique", unique), ("misses", misses)):
            self._count(name, value)
        for name, value in (("unique", unique), ("slots", node_slots), ("sample_slots", slots)):
            self.most[name] = max(self.most[name], int(value.max(initial=0)))
        self._host_packets(shares, slots, batch.table_count)
        sent = self._sent(batch, node_slots, holder)
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

    def _host_packets(self, shares: np.ndarray, slots: np.ndarray, tables: int) -> None:
        """Count packets of queries and results; ``slots`` are those of each sample."""
        packing = self._packing
        results = packets(np.arange(tables), packing.results)
        for node, mine in enumerate(np.split(slots, np.cumsum(shares)[:-1])):
            if not len(mine):
                continue
            records = np.arange(mine.sum() + len(mine))
            asked = packing.record_bytes(packets(records, packing.queries))
            for kind in ("full", "expected"):
                self._add(f"{kind}_to_nic", node, asked)
                if packing.interaction is None:
                    self._add(f"{kind}_from_nic", node,
                              len(mine) * packing.vector_bytes(results))
                else:
                    self._interaction(kind, node, mine, packing.interaction)

    def _interaction(self, kind: str, node: int, slots: np.ndarray, cost: InteractionCost) -> None:
        """Count a share's requests for dense vectors, their answers, and results.

        ``slots`` are those of its samples; dense vectors are requested at dispatch.
        """
        packing, runtime = self._packing, self._packing.runtime
        timed = kind == "expected"
        lists = packets(np.cumsum(slots) - slots, packing.requests,
                        runtime.request_timeout if timed else None)
        pooled = slots * beats_of(packing.dimension)
        results = packets(np.cumsum(np.maximum(pooled, cost.cycles)),
                          max(1, cost.results_per_packet),
                          runtime.result_timeout if timed else None)
        self._add(f"{kind}_to_nic", node, packing.answer_bytes(lists))
        self._add(f"{kind}_from_nic", node,
                  packing.record_bytes(lists) + cost.result_bytes(results))

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
                    count * (_HEADER + _TAG) + len(times) * packing.dimension / LANES))
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
