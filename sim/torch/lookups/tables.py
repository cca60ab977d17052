"""The tables of a PyTorch program: its own tensors, which are the rows in GPU memory."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import torch

from host.wire.rows import GivenRows
from rtl.config import LANES
from sim.torch.lookups.bags import Bags
from sim.torch.lookups.memory import Held, known, storage_of, trim
from sim.torch.lookups.place import place

__all__ = ["Table", "Tables", "padded"]


def padded(dimension: int) -> int:
    """Return the dimension that a NIC has for vectors of ``dimension`` values: 4, 8 or 16 k."""
    for held in (4, 8):
        if dimension <= held:
            return held
    return -(-dimension // LANES) * LANES


@dataclass(frozen=True, eq=False)
class Table:
    """A table of the script.

    Members: ``held``, its place in memory, which is the script's alone; its ``shape``, rows and
    values of each; ``place``, the line that first looked it up.
    """

    held: Held
    shape: tuple[int, int]
    place: str

    @property
    def values(self) -> np.ndarray:
        """Its rows as they are now, float32 ``[rows, d]``: the script's memory, not a copy; zeros
        of a table that is gone."""
        return self.held.values

    def to_json(self) -> dict:
        """Return plain values: its shape, what padding adds to a vector, and no node."""
        rows, dimension = self.shape
        return {"rows": rows, "dimension": dimension, "place": self.place,
                "padding": padded(dimension) - dimension, "node": None}


class Tables:
    """The tables that a script has looked up so far, numbered in the order of their first lookup.

    A table that the script makes and drops again gives its number to the next one of the same
    shape and line.

    Members: ``all``; ``changed``, whether PyTorch has written to one since this was last false.
    """

    def __init__(self):
        self.all: list[Table] = []
        self.changed = False
        self._by_place: dict[tuple, int] = {}
        self._storages: set[int] = set()
        self._gone: defaultdict[tuple, list[int]] = defaultdict(list)

    def number_of(self, bags: Bags) -> int:
        """Return the number of the table of ``bags``, a new one at its first lookup."""
        found = known(bags.weight)
        if found not in self._by_place:
            self._by_place[found] = self._new(bags.weight)
        return self._by_place[found]

    def _new(self, weight: torch.Tensor) -> int:
        self._forget()
        rows, dimension = weight.shape
        table = Table(Held(weight), (rows, dimension), place())
        self._storages.add(storage_of(weight))
        if again := self._gone[table.shape, table.place]:
            self.all[again[0]], self.changed = table, True
            return again.pop(0)
        self.all.append(table)
        return len(self.all) - 1

    def _forget(self) -> None:
        """Let go of tables that are gone."""
        before = len(self._by_place)
        for found, number in list(self._by_place.items()):
            table = self.all[number]
            if not table.held.alive:
                del self._by_place[found]
                self._gone[table.shape, table.place].append(number)
        self._storages = {storage for storage, *_ in self._by_place}
        if len(self._by_place) < before:
            trim()

    def find(self, tensor: torch.Tensor) -> int | None:
        """Return the number of the table that ``tensor`` is, None if it is none."""
        return self._by_place.get(known(tensor)) if self.holds(tensor) else None

    def holds(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor shares memory with a table."""
        return storage_of(tensor) in self._storages

    @property
    def dimension(self) -> int:
        """The dimension of the NICs' vectors: of the longest, padded."""
        return padded(max(table.shape[1] for table in self.all))

    @property
    def rows(self) -> GivenRows:
        """The rows of all tables, for the NICs' hosts: the script's memory, not a copy."""
        return GivenRows(tuple(table.values for table in self.all))

    @property
    def addresses(self) -> tuple[int, ...]:
        """The address of each table's rows; 0 of a table that is gone."""
        return tuple(table.held.address for table in self.all)
