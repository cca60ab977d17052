"""Packets of rows: what a GPU answers the NIC's lookup records with."""

from collections.abc import Callable

import numpy as np

from host.dlrm.rows import row_values
from host.model import Model
from host.wire.packets import gpu_vectors, record_fields
from rtl.formats import LookupRecord

__all__ = ["Answer", "row_answers"]

Answer = Callable[[np.ndarray, int], list[np.ndarray]]
"""Packets with the rows that lookup records (uint64 ``[n]``) of a step name."""


def row_answers(model: Model, seed: int, node: int, payload_beats: int) -> Answer:
    """Return what makes the GPU_VECTORS packets of ``node``.

    ``payload_beats``: of a packet at most, behind its header. What is returned raises
    ``ValueError`` when a key is outside the model.
    """
    def answer(records: np.ndarray, step: int) -> list[np.ndarray]:
        wanted = record_fields(LookupRecord, records)
        vectors = row_values(model, seed, wanted["table"].view(np.int64),
                             wanted["row"].view(np.int64))
        return gpu_vectors(wanted["landing"].astype(np.uint16), vectors, node=node, step=step,
                           payload_beats=payload_beats)

    return answer
