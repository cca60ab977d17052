"""An update of rows by the NICs' optimizer, where PyTorch's or FBGEMM's makes one too."""

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
"""How far rows of an optimizer that is known by its name may be from a NIC's, as a share of the
largest value of a row."""


@dataclass(frozen=True, eq=False)
class Part:
    """What an update does to a table.

    Members
    -------
    table: its number in the program. values: its rows, float32 ``[rows, d]``, the program's memory.
    state: see :data:`sim.torch.values.rules.State`; None for an optimizer without.
    gradients: bags, and the gradient of each, float32 ``[n, d]``.
    """

    table: int
    values: np.ndarray
    state: State | None
    gradients: Sequence[tuple[Bags, np.ndarray]]


class Update:
    """The rows of tables of one dimension that an optimizer is about to write.

    Gradients of a row are summed exactly, the sum is rounded once, and then comes the arithmetic of
    the optimizer, each operation rounded. Rows are as they were when this is made. Then the
    program's optimizer writes them; `write` compares them with the NICs', which take their place.

    Parameters: ``rule`` of the NICs; ``parts``, one for each table; ``dimension`` of the NICs'
    vectors.

    Members: ``keys`` of the rows, ascending, with the number of the part as their table; ``sums``
    of their gradients, float32 ``[n, d]``.

    ``ValueError`` where a NIC's mean over a vector is not that over the table's dimension.
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
        """Of each key the sum of the magnitudes of its gradients."""
        keys, gradients = map(np.concatenate, zip(*self._all))
        if not len(keys):
            return gradients
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        return np.add.reduceat(np.abs(gradients[order]), starts)

    def write(self, written: Written, by_nics: "ByNics | None" = None) -> None:
        """Put the NICs' rows and states in the place of those that the program's optimizer wrote.

        ``written``: counts them. ``by_nics``: returns rows and states from NICs; None for those of
        the numerics.

        ``ValueError`` where the program's optimizer is not what it is called.
        """
        written.steps += len(self.parts)
        if not self.rule.rate and not self.rule.keeps:
            return
        theirs, their_states = self._vectors(), self._states()
        new, states = self.rule.apply(self.old, self.old_states, self.sums)
        if self.rule.keeps and apart(new, theirs) > _CLOSE:
            raise ValueError(f"rows of the optimizer of a table must be those of {self.rule.name} "
                             f"with optimizer_on nic, but are up to {apart(new, theirs):.1e} of "
                             f"their largest value away")
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
        """Return the vectors of the rows as they are now."""
        return np.concatenate([part.values[self.rows(number)]
                               for number, part in enumerate(self.parts)])

    def _states(self) -> np.ndarray:
        """Return the states of the rows as they are now; of an optimizer without, zeros."""
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
"""A function that returns the rows ``[n, d]`` and states ``[n]`` of an update's keys, as NICs wrote
them."""


@quiet()
def of_keys(bags: Bags, gradients: np.ndarray) -> np.ndarray:
    """Return the gradient of each key, float32 ``[k, d]``, from those of bags."""
    each = np.repeat(of_bags(bags, gradients), bags.lengths, axis=0)
    return each if bags.weights is None else canonical(each * bags.weights[:, None])


def of_bags(bags: Bags, gradients: np.ndarray) -> np.ndarray:
    """Return what each key of a bag has of the bag's gradient, but for its weight: ``[n, d]``."""
    if bags.pooling == "mean":
        return means(gradients, bags.lengths)
    return gradients
