"""An update that a process asks NICs for that are in another one."""

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
    """What an update does to a table, with the rows that it changes.

    Members
    -------
    table: its number in the process. shape: of the table.
    gradients: see :class:`sim.torch.values.rows.Part`; the bags' table has a shape and no rows.
    rows: that are changed, int64 ``[m]``, ascending. vectors: of these before, float32 ``[m, d]``.
    states: of these before, float32 ``[m]``; None where the optimizer has none.
    """

    table: int
    shape: tuple[int, int]
    gradients: Sequence[tuple[Bags, np.ndarray]]
    rows: np.ndarray
    vectors: np.ndarray
    states: np.ndarray | None

    def part(self, table: int, weight: torch.Tensor, states: np.ndarray) -> Part:
        """Return it as a change of another tensor, whose number is ``table``, and of ``states`` of
        its rows, to both of which what is changed is written."""
        values = weight.numpy()
        values[self.rows] = self.vectors
        if self.states is not None:
            states[self.rows] = self.states
        return Part(table, values, None if self.states is None else lambda: states,
                    [(replace(bags, weight=weight), each) for bags, each in self.gradients])


@dataclass(frozen=True, eq=False)
class AskedUpdate:
    """An update as it is sent. Members: ``rule``; ``parts``."""

    rule: Rule
    parts: Sequence[AskedPart]

    @classmethod
    def of(cls, update: Update) -> "AskedUpdate":
        """Return an update whose rows are there as they were before it."""
        return cls(update.rule, [
            AskedPart(part.table, part.values.shape,
                      [(bags.without_rows(), each) for bags, each in part.gradients],
                      update.rows(number), update.old[update.spans[number]],
                      update.old_states[update.spans[number]] if update.rule.keeps else None)
            for number, part in enumerate(update.parts)])


UpdateElsewhere = Callable[[AskedUpdate, bool], Sequence[np.ndarray]]
"""A function that returns the rows, float32 ``[n, d]``, and states ``[n]`` of an update as NICs
wrote them. It is told whether the process has written to its tables since the last time."""
