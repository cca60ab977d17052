"""Queries and answers of a share on the host port, without rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rtl.config import beats_of
from sim.offline.plan_interaction import InteractionCost
from sim.offline.plan_packing import Packing, packets

__all__ = ["Moved", "share_bytes"]

_ONE = np.ones(1, np.int64)


class Moved(NamedTuple):
    """Bytes from a host to its NIC, and from the NIC to the host."""

    to_nic: int
    from_nic: int

    def __add__(self, other: tuple) -> Moved:
        return Moved(*map(sum, zip(self, other)))


def share_bytes(packing: Packing, slots: np.ndarray, tables: int, vectors: int,
                timed: bool, words: np.ndarray | None = None) -> Moved:
    """Return the bytes of the queries and the answers of a share.

    Parameters
    ----------
    slots: slots of each sample; at least a sample.
    tables: tables whose bags the NIC answers; a sample has a bag in each.
    vectors: vectors delivered with ``deliver=unique``, including the empty vector at the end.
    timed: whether packets also leave by timeout.
    words: words of the slots of each sample; by default a word per slot.
    """
    runtime = packing.runtime
    moved = _queries(packing, slots if words is None else words, runtime.deliver == "unique")
    if runtime.deliver == "unique":
        moved += _unique(packing, slots, vectors, timed)
    elif packing.interaction is not None:
        moved += _interaction(packing, slots, packing.interaction, timed)
    else:
        answers = packing.of_values
        results = packets(np.arange(tables), answers.results)
        moved += 0, len(slots) * answers.vector_bytes(results)
    if runtime.completions:
        moved += _completion(packing, runtime.completion_flush)
    return moved


def _queries(packing: Packing, words: np.ndarray, ended: bool) -> Moved:
    """Return the bytes of queries: a record per sample, its words, and two records at the end."""
    records = np.arange(words.sum() + len(words) + 2 * ended)
    return Moved(packing.record_bytes(packets(records, packing.queries)), 0)


def _unique(packing: Packing, slots: np.ndarray, vectors: int, timed: bool) -> Moved:
    """Return the bytes of unique vectors and of the indices of all slots.

    Vectors fill packets through the whole share. Each record of a slot gives an index; records of
    samples are between the slots.
    """
    sample = np.repeat(np.arange(len(slots)), slots)
    # The timeout counts from the cycle after the first index; the packet closes a cycle later.
    timeout = max(1, packing.runtime.index_timeout) + 1 if timed else None
    indices = packets(np.arange(len(sample)) + sample, packing.indices, timeout)
    pooled = packets(np.arange(vectors), packing.results)
    return Moved(0, packing.vector_bytes(pooled) + packing.index_bytes(indices))


def _interaction(packing: Packing, slots: np.ndarray, cost: InteractionCost, timed: bool) -> Moved:
    """Return the bytes of requests for dense vectors, their answers, and results.

    Dense vectors are requested at dispatch.
    """
    runtime = packing.runtime
    lists = packets(np.cumsum(slots) - slots, packing.requests,
                    runtime.request_timeout if timed else None)
    pooled = slots * beats_of(packing.of_values.dimension)
    results = packets(np.cumsum(np.maximum(pooled, cost.cycles)), max(1, cost.results_per_packet),
                      runtime.result_timeout if timed else None)
    return Moved(packing.of_values.answer_bytes(lists),
                 packing.record_bytes(lists) + cost.result_bytes(results))


def _completion(packing: Packing, flush: bool) -> Moved:
    """Return the bytes of opening a step and of its completion word, a packet with a record each;
    with ``flush`` also of the read after the last answer."""
    record = packing.record_bytes(_ONE)
    return Moved(record * (1 + flush), record * (1 + flush))
