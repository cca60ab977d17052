"""Rows of the NICs' optimizers, compared with those of PyTorch or FBGEMM."""

from dataclasses import dataclass, field, fields

import numpy as np

from sim.torch.lookups.comparison import apart, same, ulps

__all__ = ["Written", "called"]

_CALLED = {"sgd": "SGD", "rowwise-adagrad": "row-wise Adagrad"}


@dataclass
class Written:
    """Counts of rows that the NICs' optimizers wrote.

    optimizers: names of the optimizers.
    steps: steps of tables.
    rows: written rows.
    equal: rows equal to PyTorch's or FBGEMM's bit for bit.
    most: largest difference of a value, relative to the largest value of its row.
    states: written states of rows.
    equal_states: states equal bit for bit.
    ulp: largest difference of a state in units in the last place.
    different: rows from RTL that differ from the numerics.
    """

    optimizers: set[str] = field(default_factory=set)
    steps: int = 0
    rows: int = 0
    equal: int = 0
    most: float = 0.0
    states: int = 0
    equal_states: int = 0
    ulp: int = 0
    different: int = 0

    def add(self, name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
        """Count rows ``[n, d]``, and compare them with the rows of the program's optimizer."""
        self.optimizers.add(name)
        self.rows += len(ours)
        equal = same(ours, theirs).all(axis=1)
        self.equal += int(equal.sum())
        if not equal.all():
            self.most = max(self.most, apart(ours[~equal], theirs[~equal]))

    def add_states(self, ours: np.ndarray, theirs: np.ndarray) -> None:
        """Count states ``[n]``, and compare them with the states of the program's optimizer."""
        self.states += len(ours)
        self.equal_states += int(same(ours, theirs).sum())
        self.ulp = max(self.ulp, int(ulps(ours, theirs).max(initial=0)))

    def with_(self, more: "Written") -> "Written":
        """Return the sum of the counts of two processes."""
        found = Written(self.optimizers | more.optimizers)
        for each in fields(self)[1:]:
            mine, other = getattr(self, each.name), getattr(more, each.name)
            setattr(found, each.name,
                    max(mine, other) if each.name in ("most", "ulp") else mine + other)
        return found

    def to_json(self) -> dict:
        """Return the counts as plain values."""
        return {"optimizer": ", ".join(sorted(self.optimizers)), "steps": self.steps,
                "rows": self.rows, "equal": self.equal, "most_difference": self.most,
                "states": self.states, "equal_states": self.equal_states,
                "most_state_ulp": self.ulp,
                "different": self.different}


def called(optimizers: str) -> str:
    """Return the user's names of the optimizers in `Written.to_json`."""
    return " and ".join(_CALLED[name] for name in optimizers.split(", ") if name)
