"""Update request to the process that owns the NICs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from sim.torch.lookups.bags import Bags
from sim.torch.values.rows import Part, Update
from sim.torch.values.rules import Rule

__all__ = ["AskedPart", "AskedUpdate", "UpdateElsewhere"]


@dataclass(frozen=True, eq=False)
class AskedPart:
    """Changes of an update to a table, with the affected rows.

    Members
    -------
    table: number of the table in the process.
    shape: shape of the table.
    gradients: see :class:`sim.torch.values.rows.Part`; the bags' table has a shape and no memory.
    rows: changed rows, int64 ``[m]``, ascending.
    vectors: these rows before the update, float32 ``[m, d]``.
    states: their states before the update, float32 ``[m]``; None for an optimizer without states.
    """

    table: int
    shape: tuple[int, int]
    gradients: Sequence[tuple[Bags, np.ndarray]]
    rows: np.ndarray
    vectors: np.ndarray
    states: np.ndarray | None

    def part(self, table: int, weight: torch.Tensor, states: np.ndarray) -> Part:
        """Copy rows and states to ``weight`` and ``states``, and return the part of table
        ``table``."""
        values = weight.numpy()
        values[self.rows] = self.vectors
        if self.states is not None:
            states[self.rows] = self.states
        return Part(table, values, None if self.states is None else lambda: states,
                    [(replace(bags, weight=weight), each) for bags, each in self.gradients])


@dataclass(frozen=True, eq=False)
class AskedUpdate:
    """An update in transferable form.

    rule: optimizer of the update.
    parts: changes of each table.
    """

    rule: Rule
    parts: Sequence[AskedPart]

    @classmethod
    def of(cls, update: Update) -> "AskedUpdate":
        """Return the request for an update whose rows are not written yet."""
        return cls(update.rule, [
            AskedPart(part.table, part.values.shape,
                      [(bags.without_rows(), each) for bags, each in part.gradients],
                      update.rows(number), update.old[update.spans[number]],
                      update.old_states[update.spans[number]] if update.rule.keeps else None)
            for number, part in enumerate(update.parts)])


UpdateElsewhere = Callable[[AskedUpdate, bool], Sequence[np.ndarray]]
"""Function that returns the rows, float32 ``[n, d]``, and states ``[n]`` of an update as NICs wrote
them. The second argument is True if the process has written to its tables since the last call."""
