"""The tables of a PyTorch program: its own tensors, which are the rows in GPU memory."""

from dataclasses import dataclass

import numpy as np
import torch

from host.wire.rows import GivenRows
from rtl.config import LANES
from sim.torch.lookups.bags import Bags
from sim.torch.lookups.place import place

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
        weight, known = bags.weight, _known(bags.weight)
        if known not in self._by_place:
            self._by_place[known] = len(self.all)
            weight = weight.detach()
            self.all.append(Table(weight, weight.numpy(), place()))
            self._storages.add(storage_of(weight))
        return self._by_place[known]

    def find(self, tensor: torch.Tensor) -> int | None:
        """Return the number of the table that ``tensor`` is, None if it is none."""
        return self._by_place.get(_known(tensor)) if self.holds(tensor) else None

    def holds(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor shares memory with a table."""
        return storage_of(tensor) in self._storages

    @property
    def dimension(self) -> int:
        """The dimension of the NICs' vectors: of the longest, padded."""
        return padded(max(table.weight.shape[1] for table in self.all))

    @property
    def rows(self) -> GivenRows:
        """The rows of all tables, for the NICs' hosts: the script's memory, not a copy."""
        return GivenRows(tuple(table.values for table in self.all))


def _known(weight: torch.Tensor) -> tuple:
    """Return what tells tables apart: views of one storage are different ones, a tensor of the same
    memory is the same one."""
    return (weight.data_ptr(), *weight.shape, *weight.stride())
