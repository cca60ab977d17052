"""Update of rows by the NICs' optimizer, in place of PyTorch's or FBGEMM's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from host.dlrm.exact_keys import sums_by_key
from host.dlrm.float32 import canonical, means, quiet
from host.samples import KEY_ROW_BITS
from sim.torch.lookups.bags import Bags
from sim.torch.lookups.comparison import apart
from sim.torch.values.rules import Rule, State
from sim.torch.values.written import Written

__all__ = ["ByNics", "Part", "Update", "of_bags", "of_keys"]

_CLOSE = 1e-3
"""Largest accepted difference from a NIC's rows for an optimizer that is identified by its name,
relative to the largest value of a row."""


@dataclass(frozen=True, eq=False)
class Part:
    """Changes of an update to a table.

    Members
    -------
    table: number of the table in the program.
    values: rows, float32 ``[rows, d]``, in the program's memory.
    state: see :data:`sim.torch.values.rules.State`; None for an optimizer without states.
    gradients: bags, and the gradient of each bag, float32 ``[n, d]``.
    """

    table: int
    values: np.ndarray
    state: State | None
    gradients: Sequence[tuple[Bags, np.ndarray]]


class Update:
    """Rows of tables of the same dimension that an optimizer is about to write.

    Gradients of a row are summed exactly and rounded once. The optimizer then rounds each
    operation. The constructor saves the old rows; the program's optimizer writes its rows; `write`
    compares them with the NICs' rows and replaces them.

    rule: optimizer of the NICs.
    parts: a part for each table.
    dimension: dimension of the NICs' vectors.

    keys: member; keys of the rows, ascending, with the number of the part as table.
    sums: member; sums of their gradients, float32 ``[n, d]``.

    Raises ``ValueError`` if row-wise Adagrad on a NIC would average over a different dimension.
    """

    def __init__(self, rule: Rule, parts: Sequence[Part], dimension: int):
        own = parts[0].values.shape[1]
        if rule.keeps and own != dimension:
            raise ValueError(f"vectors of a table must have the {dimension} values of the NICs' "
                             f"vectors with {rule.name} and optimizer_on nic, not {own}: its state "
                             f"is a mean over all")
        self.rule, self.parts = rule, parts
        self._all = [(bags.rows | number << KEY_ROW_BITS, of_keys(bags, gradients))
                     for number, part in enumerate(parts) for bags, gradients in part.gradients]
        self.keys, self.sums = sums_by_key(*map(np.concatenate, zip(*self._all)))
        self._rows = self.keys & (1 << KEY_ROW_BITS) - 1
        ends = np.searchsorted(self.keys >> KEY_ROW_BITS, np.arange(len(parts) + 1)).tolist()
        self.spans = [slice(*each) for each in pairwise(ends)]
        self.old = self._vectors()
        self.old_states = self._states()

    def rows(self, number: int) -> np.ndarray:
        """Return the rows of a part, ascending."""
        return self._rows[self.spans[number]]

    @cached_property
    @quiet()
    def magnitudes(self) -> np.ndarray:
        """Sum of the magnitudes of the gradients of each key."""
        keys, gradients = map(np.concatenate, zip(*self._all))
        if not len(keys):
            return gradients
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        return np.add.reduceat(np.abs(gradients[order]), starts)

    def write(self, written: Written, by_nics: "ByNics | None" = None) -> None:
        """Replace the rows and states of the program's optimizer by the NICs'.

        written: counters to update.
        by_nics: function that returns rows and states from NICs; None to use the numerics.

        Raises ``ValueError`` if the program's optimizer does not compute the rows that its name
        implies.
        """
        written.steps += len(self.parts)
        if not self.rule.rate and not self.rule.keeps:
            return
        theirs, their_states = self._vectors(), self._states()
        new, states = self.rule.apply(self.old, self.old_states, self.sums)
        if self.rule.keeps and apart(new, theirs) > _CLOSE:
            raise ValueError(f"rows of the optimizer of a table must be those of {self.rule.name} "
                             f"with optimizer_on nic, but differ by up to "
                             f"{apart(new, theirs):.1e} of their largest value")
        if by_nics is not None and len(self.keys):
            self._put(self.old, self.old_states)
            expected = new, states
            new, states = by_nics(self)
            written.different += int((
                (new.view(np.uint32) != expected[0].view(np.uint32)).any(axis=1)
                | (states.view(np.uint32) != expected[1].view(np.uint32))).sum())
        self._put(new, states)
        written.add(self.rule.name, new, theirs)
        if self.rule.keeps:
            written.add_states(states, their_states)

    def _vectors(self) -> np.ndarray:
        """Return the current vectors of the rows."""
        return np.concatenate([part.values[self.rows(number)]
                               for number, part in enumerate(self.parts)])

    def _states(self) -> np.ndarray:
        """Return the current states of the rows; zeros for an optimizer without states."""
        states = np.zeros(len(self.keys), np.float32)
        for number, part in enumerate(self.parts):
            if part.state is not None:
                found = part.state()
                states[self.spans[number]] = (found if isinstance(found, float) else
                                              found[self.rows(number)])
        return states

    def _put(self, vectors: np.ndarray, states: np.ndarray) -> None:
        for number, part in enumerate(self.parts):
            part.values[self.rows(number)] = vectors[self.spans[number]]
            if part.state is not None:
                found = part.state()
                assert not isinstance(found, float)
                found[self.rows(number)] = states[self.spans[number]]


ByNics = Callable[[Update], tuple[np.ndarray, np.ndarray]]
"""Function that returns the rows ``[n, d]`` and states ``[n]`` of an update's keys as NICs wrote
them."""


@quiet()
def of_keys(bags: Bags, gradients: np.ndarray) -> np.ndarray:
    """Return the gradient of each key, float32 ``[k, d]``, from the gradients of bags."""
    each = np.repeat(of_bags(bags, gradients), bags.lengths, axis=0)
    return each if bags.weights is None else canonical(each * bags.weights[:, None])


def of_bags(bags: Bags, gradients: np.ndarray) -> np.ndarray:
    """Return the unweighted gradient of each key of a bag: ``[n, d]``."""
    if bags.pooling == "mean":
        return means(gradients, bags.lengths)
    return gradients
