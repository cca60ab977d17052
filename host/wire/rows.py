"""Packets of rows: a GPU's answers to the NIC's lookup records."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from host.dlrm.formats import VectorFormat
from host.dlrm.rows import row_values
from host.model import Model
from host.wire.packets import gpu_vectors, record_fields
from rtl.formats import LookupRecord

__all__ = ["Answer", "GivenRows", "row_answers"]

Answer = Callable[[np.ndarray, int], list[np.ndarray]]
"""Returns packets with the rows that a step's lookup records (uint64 ``[n]``) name."""


def row_answers(model: Model, seed: int, node: int, payload_beats: int,
                wire: str = "float32") -> Answer:
    """Return a function that makes the GPU_VECTORS packets of ``node``.

    payload_beats: maximum beats of a packet after its header. wire: format of the vectors. The
    function raises ``ValueError`` for a key outside the model.
    """
    return _answers(partial(row_values, model, seed), node, payload_beats,
                    VectorFormat.of(model, wire))


def _answers(read: Callable[[np.ndarray, np.ndarray], np.ndarray], node: int, payload_beats: int,
             wire: VectorFormat) -> Answer:
    """Return a function that makes packets with the vectors that ``read`` returns of tables and
    rows."""
    def answer(records: np.ndarray, step: int) -> list[np.ndarray]:
        wanted = record_fields(LookupRecord, records)
        tables = wanted["table"].view(np.int64)
        vectors = wire.packed(read(tables, wanted["row"].view(np.int64)), tables)
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

    def answers(self, model: Model, seed: int, node: int, payload_beats: int,
                wire: str = "float32") -> Answer:
        """Return a function that makes the GPU_VECTORS packets of ``node``.

        The parameters are those of :func:`row_answers`; ``seed`` is ignored. The function raises
        ``IndexError`` for a key outside the tables.
        """
        return _answers(partial(self.read, dimension=model.width), node, payload_beats,
                        VectorFormat.of(model, wire))
