"""Packets of rows: a GPU's answers to the NIC's lookup records."""

from collections.abc import Callable

import numpy as np

from host.dlrm.rows import row_values
from host.model import Model
from host.wire.packets import gpu_vectors, record_fields
from rtl.formats import LookupRecord

__all__ = ["Answer", "row_answers"]

Answer = Callable[[np.ndarray, int], list[np.ndarray]]
"""Returns packets with the rows that a step's lookup records (uint64 ``[n]``) name."""


def row_answers(model: Model, seed: int, node: int, payload_beats: int) -> Answer:
    """Return a function that makes the GPU_VECTORS packets of ``node``.

    ``payload_beats``: most beats of a packet after its header. The function raises ``ValueError``
    for a key outside the model.
    """
    def answer(records: np.ndarray, step: int) -> list[np.ndarray]:
        wanted = record_fields(LookupRecord, records)
        vectors = row_values(model, seed, wanted["table"].view(np.int64),
                             wanted["row"].view(np.int64))
        return gpu_vectors(wanted["landing"].astype(np.uint16), vectors, node=node, step=step,
                           payload_beats=payload_beats)

    return answer
