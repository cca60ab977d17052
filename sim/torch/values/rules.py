"""The NICs' optimizers, and which of PyTorch's, TorchRec's and FBGEMM's they stand in for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from host.dlrm.optimizer import Optimizer, follow
from sim.torch.lookups.fused import optimizer_of
from sim.torch.lookups.memory import array_of

__all__ = ["Rule", "State", "rule_of", "rule_of_fused", "state_of"]

_WITH = "with optimizer_on nic"
_UNUSED = {
    "SGD": {"momentum": 0, "weight_decay": 0, "maximize": False},
    "RowWiseAdagrad": {"lr_decay": 0, "weight_decay": 0, "maximize": False},
    "RWSAdagrad": {"lr_decay": 0, "weight_decay": 0},
}
"""Optimizers of programs that a NIC has, by the names of their classes, and what these have that
the NIC has not."""
_MADE_BY = {"SGD": "torch.optim.sgd", "RowWiseAdagrad": "torchrec.optim.rowwise_adagrad"}
"""Modules of these classes; that of facebookresearch/dlrm may have any name."""
_STATES = {"RowWiseAdagrad": "sum", "RWSAdagrad": "momentum"}
"""Where an optimizer keeps the state of each row."""
_FUSED = {"sgd": "sgd", "rowwise_adagrad": "rowwise-adagrad"}
_UNUSED_FUSED = {"weight_decay": 0, "max_norm": 0}

State = Callable[[], np.ndarray | float]
"""Returns the state of each row of a table, float32 ``[rows]``, in the program's own memory; what
each is to begin with, while there is none."""


@dataclass(frozen=True)
class Rule:
    """An optimizer of a NIC with a rate of the moment.

    Members: ``name``, ``rate`` and ``epsilon``, see :class:`host.dlrm.optimizer.Optimizer`; the
    rate may be 0.

    ``ValueError`` for a number that is not finite and positive as a float32.
    """

    name: str
    rate: float
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        Optimizer(self.name, self.rate or 1.0, self.epsilon)

    @property
    def keeps(self) -> bool:
        """Whether it has a state of each row."""
        return self.name != "sgd"

    def apply(self, vectors: np.ndarray, states: np.ndarray,
              sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return new vectors ``[n, d]`` and states ``[n]``, bit for bit as a NIC makes them from
        the sums ``[n, d]`` of gradients."""
        return follow(self.name, self.rate, self.epsilon, vectors, states, sums)


def rule_of(optimizer: torch.optim.Optimizer, group: dict, gradient: torch.Tensor,
            closures: tuple) -> Rule:
    """Return what a NIC does in place of an optimizer of a program.

    ``group``: of its parameters, in which the table is. ``gradient``: of the table. ``closures``:
    arguments of its step.

    Raises ``ValueError`` for an optimizer that the NIC does not have.
    """
    name = type(optimizer).__name__
    if name not in _UNUSED or _MADE_BY.get(name, type(optimizer).__module__) != (
            type(optimizer).__module__):
        raise ValueError(f"the optimizer of a table must be SGD, TorchRec's RowWiseAdagrad or "
                         f"RWSAdagrad {_WITH}, not {name}")
    for field, unused in _UNUSED[name].items():
        if group[field] != unused:
            raise ValueError(f"{field} of the optimizer of a table must be {unused} {_WITH}, "
                             f"not {group[field]!r}")
    if any(callable(each) for each in closures):
        raise ValueError(f"closure of an optimizer's step must be None {_WITH}, "
                         f"which takes the gradients that are there before it")
    if name == "SGD":
        return Rule("sgd", float(group["lr"]))
    if name == "RWSAdagrad" and not gradient.is_sparse:
        raise ValueError(f"gradients of a table must be sparse with RWSAdagrad {_WITH}: of dense "
                         f"ones it keeps a state for each value, not for each row")
    return Rule("rowwise-adagrad", float(group["lr"]), float(group["eps"]))


def state_of(optimizer: torch.optim.Optimizer, parameter: torch.Tensor) -> State:
    """Return where an optimizer of a program has the states of a table's rows."""
    def state() -> np.ndarray | float:
        found = optimizer.state[parameter].get(_STATES.get(type(optimizer).__name__, ""))
        if found is None:  # facebookresearch/dlrm's has none before the first step
            return float(optimizer.defaults.get("initial_accumulator_value", 0))
        return array_of(found.detach().view(-1))

    return state


def rule_of_fused(name: str, given: dict[str, Any]) -> Rule:
    """Return what a NIC does in place of an optimizer that FBGEMM fuses with the gradients.

    ``name``: of an operator for which :func:`sim.torch.lookups.fused.is_update` holds. ``given``:
    its arguments by their names.

    Raises ``ValueError`` for an optimizer that the NIC does not have.
    """
    optimizer = optimizer_of(name)
    if optimizer not in _FUSED:
        raise ValueError(f"the fused optimizer of tables must be {' or '.join(_FUSED)} {_WITH}, "
                         f"not {optimizer}")
    for field, unused in _UNUSED_FUSED.items():
        if given.get(field, unused) != unused:
            raise ValueError(f"{field} of the fused optimizer of tables must be {unused} {_WITH}, "
                             f"not {given[field]!r}")
    return Rule(_FUSED[optimizer], float(given["learning_rate_tensor"]),
                *(float(given[each]) for each in ("eps",) if each in given))
