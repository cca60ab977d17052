"""What a node's share of a mini-batch is on its host port, but for rows: queries and answers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rtl.config import beats_of
from sim.offline.plan_interaction import InteractionCost
from sim.offline.plan_packing import Packing, packets

__all__ = ["Moved", "share_bytes"]

_ONE = np.ones(1, np.int64)


class Moved(NamedTuple):
    """Bytes that a host sends to its NIC, and that it is sent."""

    to_nic: int
    from_nic: int

    def __add__(self, other: tuple) -> Moved:
        return Moved(*map(sum, zip(self, other)))


def share_bytes(packing: Packing, slots: np.ndarray, tables: int, vectors: int,
                timed: bool) -> Moved:
    """Return the bytes of the queries and the answers of a share.

    Parameters
    ----------
    slots: of each of its samples; at least one sample.
    tables: of the model, each with a bag in each sample.
    vectors: that are delivered with ``deliver=unique``, the empty one at the share's end included.
    timed: whether packets also leave by time-out.
    """
    runtime = packing.runtime
    moved = _queries(packing, slots, runtime.deliver == "unique")
    if runtime.deliver == "unique":
        moved += _unique(packing, slots, vectors, timed)
    elif packing.interaction is not None:
        moved += _interaction(packing, slots, packing.interaction, timed)
    else:
        results = packets(np.arange(tables), packing.results)
        moved += 0, len(slots) * packing.vector_bytes(results)
    if runtime.completions:
        moved += _completion(packing, runtime.completion_flush)
    return moved


def _queries(packing: Packing, slots: np.ndarray, ended: bool) -> Moved:
    """Return the bytes of queries: a record for each sample and slot; two more that end a share."""
    records = np.arange(slots.sum() + len(slots) + 2 * ended)
    return Moved(packing.record_bytes(packets(records, packing.queries)), 0)


def _unique(packing: Packing, slots: np.ndarray, vectors: int, timed: bool) -> Moved:
    """Return the bytes of different vectors and of the indices of all slots.

    Vectors fill packets through the whole share. An index comes with each record of a slot, those
    of samples between them.
    """
    sample = np.repeat(np.arange(len(slots)), slots)
    # An open packet is looked at from the cycle after its first index on, and closes in the next.
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
    pooled = slots * beats_of(packing.dimension)
    results = packets(np.cumsum(np.maximum(pooled, cost.cycles)), max(1, cost.results_per_packet),
                      runtime.result_timeout if timed else None)
    return Moved(packing.answer_bytes(lists),
                 packing.record_bytes(lists) + cost.result_bytes(results))


def _completion(packing: Packing, flush: bool) -> Moved:
    """Return the bytes of the opening of a step and of its word, each a record in a packet; with
    ``flush`` also of the read behind the last answer."""
    record = packing.record_bytes(_ONE)
    return Moved(record * (1 + flush), record * (1 + flush))
