"""Tables of a PyTorch program: its own tensors, which represent the rows in GPU memory."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import torch

from host.model import padded
from host.wire.rows import GivenRows
from sim.torch.lookups.bags import Bags
from sim.torch.lookups.memory import Held, known, storage_of, trim
from sim.torch.lookups.place import place

__all__ = ["Table", "Tables"]


@dataclass(frozen=True, eq=False)
class Table:
    """A table of the script.

    held: position in the script's memory.
    shape: rows, and values of each row.
    place: source line of the first lookup.
    """

    held: Held
    shape: tuple[int, int]
    place: str

    @property
    def values(self) -> np.ndarray:
        """Current rows, float32 ``[rows, d]``, in the script's memory; zeros if the table is gone.
        """
        return self.held.values

    def to_json(self) -> dict:
        """Return shape, source line and padding as plain values; the node is None."""
        rows, dimension = self.shape
        return {"rows": rows, "dimension": dimension, "place": self.place,
                "padding": padded(dimension) - dimension, "node": None}


class Tables:
    """The tables that a script has looked up so far, numbered by first lookup.

    A table that the script drops leaves its number to the next table of the same shape and source
    line.

    all: the tables.
    changed: True if PyTorch has written to a table since the flag was reset.
    """

    def __init__(self):
        self.all: list[Table] = []
        self.changed = False
        self._by_place: dict[tuple, int] = {}
        self._storages: set[int] = set()
        self._gone: defaultdict[tuple, list[int]] = defaultdict(list)

    def number_of(self, bags: Bags) -> int:
        """Return the number of the table of ``bags``; the first lookup assigns it."""
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
        """Drop tables whose memory is gone."""
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
        """Return the number of the table in ``tensor``; None if it is not a table."""
        return self._by_place.get(known(tensor)) if self.holds(tensor) else None

    def holds(self, tensor: torch.Tensor) -> bool:
        """Return True if a tensor shares memory with a table."""
        return storage_of(tensor) in self._storages

    @property
    def dimension(self) -> int:
        """Dimension of the NICs' vectors: the padded dimension of the widest table."""
        return padded(max(table.shape[1] for table in self.all))

    @property
    def rows(self) -> GivenRows:
        """The rows of all tables for the NICs' hosts, in the script's memory."""
        return GivenRows(tuple(table.values for table in self.all))

    @property
    def addresses(self) -> tuple[int, ...]:
        """Address of each table's rows; 0 if a table is gone."""
        return tuple(table.held.address for table in self.all)
