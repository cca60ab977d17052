"""The tables of a PyTorch program: its own tensors, which are the rows in GPU memory."""

from dataclasses import dataclass

import numpy as np
import torch

from host.model import Model
from host.wire.packets import gpu_vectors, record_fields
from host.wire.rows import Answer
from rtl.config import LANES
from rtl.formats import LookupRecord
from sim.torch.bags import Bags
from sim.torch.place import place

__all__ = ["Table", "Tables", "padded", "storage_of"]


def padded(dimension: int) -> int:
    """Return the dimension that a NIC has for vectors of ``dimension`` values: 4, 8 or 16 k."""
    for held in (4, 8):
        if dimension <= held:
            return held
    return -(-dimension // LANES) * LANES


def storage_of(tensor: torch.Tensor) -> int:
    """Return where the values of a tensor begin in memory; 0 where it has no such place."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


@dataclass(frozen=True, eq=False)
class Table:
    """A table of the script.

    Members: its ``weight``; ``values``, its rows as they are now, float32 ``[rows, d]``: the
    script's memory, not a copy; ``place``, the line that first looked it up.
    """

    weight: torch.Tensor
    values: np.ndarray
    place: str

    def to_json(self) -> dict:
        """Return plain values: its shape, what padding adds to a vector, and no node."""
        rows, dimension = self.weight.shape
        return {"rows": rows, "dimension": dimension, "place": self.place,
                "padding": padded(dimension) - dimension, "node": None}


class Tables:
    """The tables that a script has looked up so far, numbered in the order of their first lookup.

    Members: ``all``; ``changed``, whether PyTorch has written to one since this was last false.
    """

    def __init__(self):
        self.all: list[Table] = []
        self.changed = False
        self._by_place: dict[tuple, int] = {}
        self._storages: set[int] = set()

    def number_of(self, bags: Bags) -> int:
        """Return the number of the table of ``bags``, a new one at its first lookup."""
        weight = bags.weight
        # Views of one storage are different tables; a tensor of the same memory is the same one.
        known = (weight.data_ptr(), *weight.shape, *weight.stride())
        if known not in self._by_place:
            self._by_place[known] = len(self.all)
            weight = weight.detach()
            self.all.append(Table(weight, weight.numpy(), place()))
            self._storages.add(storage_of(weight))
        return self._by_place[known]

    def holds(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor shares memory with a table."""
        return storage_of(tensor) in self._storages

    @property
    def dimension(self) -> int:
        """The dimension of the NICs' vectors: of the longest, padded."""
        return padded(max(table.weight.shape[1] for table in self.all))

    def read(self, tables: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of keys as they are now, float32 ``[n, dimension]``, padded with +0.
        """
        vectors = np.zeros((len(rows), self.dimension), np.float32)
        for number in np.unique(tables).tolist():
            mine = tables == number
            values = self.all[number].values
            vectors[mine, :values.shape[1]] = values[rows[mine]]
        return vectors

    def answers(self, model: Model, seed: int, node: int, payload_beats: int) -> Answer:
        """Return a function that makes the GPU_VECTORS packets of ``node`` from the script's rows.

        The parameters are those of :func:`host.wire.rows.row_answers`; ``model`` and ``seed`` do
        not matter.
        """
        def answer(records: np.ndarray, step: int) -> list[np.ndarray]:
            wanted = record_fields(LookupRecord, records)
            vectors = self.read(wanted["table"].view(np.int64), wanted["row"].view(np.int64))
            return gpu_vectors(wanted["landing"].astype(np.uint16), vectors, node=node, step=step,
                               payload_beats=payload_beats)

        return answer
