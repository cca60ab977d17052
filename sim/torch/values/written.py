"""What the NICs' optimizers wrote, beside what PyTorch's or FBGEMM's would have."""

from dataclasses import dataclass, field, fields

import numpy as np

from sim.torch.lookups.comparison import apart, same, ulps

__all__ = ["Written", "called"]

_CALLED = {"sgd": "SGD", "rowwise-adagrad": "row-wise Adagrad"}


@dataclass
class Written:
    """Rows that the NICs' optimizers wrote.

    Members: ``optimizers``, their names; ``steps`` of tables; ``rows``; ``equal``, of them, as
    PyTorch or FBGEMM makes them bit for bit; ``most``, the largest difference of a value as a share
    of the largest of its row; ``states``, ``equal_states``, ``ulp``: states of rows, those that are
    theirs bit for bit, and the most that one is away; ``different``, rows from RTL that are not
    those of the numerics.
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
        """Count rows ``[n, d]`` of an optimizer, and compare them with those of the program's."""
        self.optimizers.add(name)
        self.rows += len(ours)
        equal = same(ours, theirs).all(axis=1)
        self.equal += int(equal.sum())
        if not equal.all():
            self.most = max(self.most, apart(ours[~equal], theirs[~equal]))

    def add_states(self, ours: np.ndarray, theirs: np.ndarray) -> None:
        """Count states ``[n]`` of rows, and compare them with those of the program's optimizer."""
        self.states += len(ours)
        self.equal_states += int(same(ours, theirs).sum())
        self.ulp = max(self.ulp, int(ulps(ours, theirs).max(initial=0)))

    def with_(self, more: "Written") -> "Written":
        """Return this and what another process wrote."""
        found = Written(self.optimizers | more.optimizers)
        for each in fields(self)[1:]:
            mine, other = getattr(self, each.name), getattr(more, each.name)
            setattr(found, each.name,
                    max(mine, other) if each.name in ("most", "ulp") else mine + other)
        return found

    def to_json(self) -> dict:
        """Return plain values."""
        return {"optimizer": ", ".join(sorted(self.optimizers)), "steps": self.steps,
                "rows": self.rows, "equal": self.equal, "most_difference": self.most,
                "states": self.states, "equal_states": self.equal_states,
                "most_state_ulp": self.ulp,
                "different": self.different}


def called(optimizers: str) -> str:
    """Return in words the optimizers that `Written.to_json` names."""
    return " and ".join(_CALLED[name] for name in optimizers.split(", ") if name)
