"""Packets of a plan: units and bytes per packet."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from host.wire.packets import vectors_that_fit
from rtl.config import LANES, NicConfig
from rtl.formats import BEAT_BYTES, INDICES_PER_BEAT, RECORDS_PER_BEAT, TAGS_PER_BEAT
from sim.job.settings import Runtime
from sim.offline.plan_interaction import InteractionCost

__all__ = ["HEADER", "TAG", "Packing", "bag_packets", "packets"]

HEADER, TAG = 1, 1
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


def bag_packets(times: np.ndarray, words: np.ndarray, most: int, timeout: float | None = None,
                most_bags: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the words and the bags in each packet (int64); bags arrive at ``times``, ascending.

    A bag never crosses packets of at most ``most`` words and ``most_bags`` bags. ``timeout``: as in
    :func:`packets`.
    """
    before = np.concatenate(([0], np.cumsum(words)))
    bounds, at = [0], 0
    while at < len(times):
        end = int(np.searchsorted(before, before[at] + most, side="right")) - 1
        if timeout is not None:
            end = min(end, int(np.searchsorted(times, times[at] + timeout, side="left")))
        at = max(at + 1, min(end, at + (most_bags or len(times))))
        bounds.append(at)
    return np.diff(before[bounds]), np.diff(np.array(bounds, np.int64))


@dataclass(frozen=True)
class Packing:
    """Capacity of each kind of packet, for a NIC in a cluster of ``nodes`` nodes.

    Members
    -------
    config, runtime: sizes and settings of the NIC.
    nodes: nodes of the cluster.
    dimension: lanes of a vector; vectors of fewer than 16 lanes share beats.
    interaction: cost of the interaction on the NIC, or None.
    values: float32 values of a vector that NICs pool, if they convert vectors; else 0.

    A vector that exceeds a packet of this NIC counts as a packet; the NIC does not support its
    dimension.
    """

    config: NicConfig
    runtime: Runtime
    nodes: int
    dimension: int
    interaction: InteractionCost | None = None
    values: int = 0

    @property
    def of_values(self) -> Packing:
        """Capacity of packets of vectors as NICs pool them."""
        return replace(self, dimension=self.values, values=0) if self.values else self

    @property
    def lookups(self) -> int:
        """Records of a lookups packet: limited by frame payload and by credit at the owner."""
        share = self.config.lookup_beats // self.nodes
        window = max(1, share - share // 8)
        return RECORDS_PER_BEAT * min(self.config.net_payload_beats, window)

    @property
    def bag_words(self) -> int:
        """Words of a packet of bags: limited by frame payload and by credit at the owner."""
        share = self.config.owner_bag_beats // self.nodes
        return RECORDS_PER_BEAT * min(self.config.net_payload_beats, share - share // 8)

    @property
    def listed_bags(self) -> int:
        """Bags of a list to the GPU."""
        return min(self.runtime.bag_batch, self.answers)

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
        return max(1, (beats - TAG) * LANES // self.dimension)

    @property
    def indices(self) -> int:
        """Indices of a packet, behind its tag beat."""
        return INDICES_PER_BEAT * (self.config.host_payload_beats - TAG)

    def record_bytes(self, sizes: np.ndarray) -> int:
        """Return the bytes of packets of records."""
        return BEAT_BYTES * int((HEADER - (-sizes // RECORDS_PER_BEAT)).sum())

    def vector_bytes(self, sizes: np.ndarray) -> int:
        """Return the bytes of packets of vectors with one tag beat."""
        return BEAT_BYTES * int((HEADER + TAG - (-sizes * self.dimension // LANES)).sum())

    def index_bytes(self, sizes: np.ndarray) -> int:
        """Return the bytes of packets of indices."""
        return BEAT_BYTES * int((HEADER + TAG - (-sizes // INDICES_PER_BEAT)).sum())

    def answer_bytes(self, lists: np.ndarray) -> int:
        """Return the bytes of the GPU's answers to ``lists`` of rows, an answer per list."""
        whole, rest = np.divmod(lists, self.answers)
        sizes = np.concatenate((np.full(int(whole.sum()), self.answers), rest[rest > 0]))
        return BEAT_BYTES * int((HEADER - (-sizes // TAGS_PER_BEAT)
                                 - (-sizes * self.dimension // LANES)).sum())
