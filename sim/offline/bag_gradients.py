"""Bags with gradients of a mini-batch: their bytes and packets on PCIe and on the network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from host.dlrm.weighted import rows_once
from host.placement.shard import ShardPlan
from host.samples import Samples, share_sizes
from host.timing.network import NetworkProfile
from host.wire.bags import NARROW_ROWS
from rtl.config import NicConfig
from rtl.formats import BEAT_BYTES, RECORDS_PER_BEAT, EmberHeader, words_of
from sim.job.settings import Runtime
from sim.node.gradients import gradient_payload
from sim.offline.plan_packing import Packing, bag_packets

__all__ = ["BagTraffic"]


@dataclass(frozen=True, eq=False)
class BagTraffic:
    """Bags of other nodes' tables with their gradients, where GPUs update the rows.

    Members, int64 ``[requester, owner]`` unless stated otherwise
    -------
    bags: bags. packets, beats: full packets between NICs, and their beats behind the headers.
    segments: beats of the NICs' path of bags, which may begin at any word of a beat: float64.
    to_nic, lists: bytes from a GPU to its NIC, and from a NIC to its GPU: ``[nodes]``.
    """

    bags: np.ndarray
    packets: np.ndarray
    beats: np.ndarray
    segments: np.ndarray
    to_nic: np.ndarray
    lists: np.ndarray

    @classmethod
    def of(cls, samples: Samples, plan: ShardPlan, config: NicConfig, runtime: Runtime,
           width: int) -> BagTraffic:
        """Return the traffic of a mini-batch of vectors of ``width`` values under ``plan``."""
        nodes, packing = plan.nodes, Packing(config, runtime, plan.nodes, width)
        samples = rows_once(samples, plan.weighted)
        shares = np.array(share_sizes(len(samples), nodes))
        holder = np.repeat(np.arange(nodes), shares)
        owners = np.array([table.owner for table in plan.tables])
        lengths = samples.bag_lengths.astype(np.int64)
        sample, table = np.nonzero((plan.owner_pooled > 0) & (lengths > 0)
                                   & (owners != holder[:, None]))
        each, weighted = lengths[sample, table], plan.weighted[table]
        # The keys of a weighted bag travel one by one.
        sample, table, each = (np.repeat(value, np.where(weighted, each, 1)) for value in (
            sample, table, np.where(weighted, 1, each)))
        requester, owner = holder[sample], owners[table]
        words = width // 2 + 1 + words_of(
            each, (plan.owner_pooled[table] > NARROW_ROWS).astype(np.int64), 0)
        bags, packets, beats = (np.zeros((nodes, nodes), np.int64) for _ in range(3))
        segments = np.zeros((nodes, nodes))
        to_nic, lists = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        # Nodes send at the same rate.
        turn = np.argsort(sample - (np.cumsum(shares) - shares)[requester], kind="stable")
        for node in range(nodes):
            mine = requester == node
            to_nic[node] = packing.record_bytes(_words(
                words[mine], RECORDS_PER_BEAT * gradient_payload(config)))
            for other in np.flatnonzero(np.bincount(owner[mine], minlength=nodes)):
                sent = words[mine & (owner == other)]
                sizes = _words(sent, packing.bag_words)
                bags[node, other], packets[node, other] = len(sent), len(sizes)
                beats[node, other] = (-(-sizes // RECORDS_PER_BEAT)).sum()
                segments[node, other] = (sent + RECORDS_PER_BEAT - 1).sum() / RECORDS_PER_BEAT
            lists[node] = packing.record_bytes(_words(
                words[turn][owner[turn] == node], RECORDS_PER_BEAT * config.net_payload_beats,
                packing.listed_bags))
        return cls(bags, packets, beats, segments, to_nic, lists)

    @property
    def payload(self) -> np.ndarray:
        """UDP payload of the packets in bytes: int64 ``[requester, owner]``."""
        return EmberHeader.size // 8 * self.packets + BEAT_BYTES * self.beats

    def wire_bytes(self, network: NetworkProfile) -> np.ndarray:
        """Return the bytes on the wire, with all headers: int64 ``[requester, owner]``."""
        return BEAT_BYTES * (self.packets + self.beats) + network.overhead_bytes * self.packets


def _words(words: np.ndarray, most: int, most_bags: int | None = None) -> np.ndarray:
    """Return the words of each full packet of bags of ``words`` words."""
    return bag_packets(np.arange(len(words)), words, most, most_bags=most_bags)[0]
