"""Packets of rows: a GPU's answers to the NIC's lookup records."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from host.dlrm.rows import row_values
from host.model import Model
from host.wire.packets import gpu_vectors, record_fields
from rtl.formats import LookupRecord

__all__ = ["Answer", "GivenRows", "row_answers"]

Answer = Callable[[np.ndarray, int], list[np.ndarray]]
"""Returns packets with the rows that a step's lookup records (uint64 ``[n]``) name."""


def row_answers(model: Model, seed: int, node: int, payload_beats: int) -> Answer:
    """Return a function that makes the GPU_VECTORS packets of ``node``.

    payload_beats: maximum beats of a packet after its header. The function raises ``ValueError``
    for a key outside the model.
    """
    def answer(records: np.ndarray, step: int) -> list[np.ndarray]:
        wanted = record_fields(LookupRecord, records)
        vectors = row_values(model, seed, wanted["table"].view(np.int64),
                             wanted["row"].view(np.int64))
        return gpu_vectors(wanted["landing"].astype(np.uint16), vectors, node=node, step=step,
                           payload_beats=payload_beats)

    return answer


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Rows in GPU memory with given values, instead of values derived from a seed.

    Rows are read when the NIC requests them. Vectors longer than ``d`` are padded with +0.

    Members: ``tables``: rows of each table, float32 ``[rows, d]``.
    """

    tables: tuple[np.ndarray, ...]

    def read(self, tables: np.ndarray, rows: np.ndarray, dimension: int) -> np.ndarray:
        """Return the current vectors of keys, float32 ``[n, dimension]``."""
        vectors = np.zeros((len(rows), dimension), np.float32)
        for number in np.unique(tables).tolist():
            mine = tables == number
            values = self.tables[number]
            vectors[mine, :values.shape[1]] = values[rows[mine]]
        return vectors

    def answers(self, model: Model, seed: int, node: int, payload_beats: int) -> Answer:
        """Return a function that makes the GPU_VECTORS packets of ``node``.

        The parameters are those of :func:`row_answers`; ``seed`` is ignored. The function raises
        ``IndexError`` for a key outside the tables.
        """
        def answer(records: np.ndarray, step: int) -> list[np.ndarray]:
            wanted = record_fields(LookupRecord, records)
            vectors = self.read(wanted["table"].view(np.int64), wanted["row"].view(np.int64),
                                model.width)
            return gpu_vectors(wanted["landing"].astype(np.uint16), vectors, node=node, step=step,
                               payload_beats=payload_beats)

        return answer
