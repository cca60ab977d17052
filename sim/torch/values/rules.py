"""The NICs' optimizers, and their counterparts in PyTorch, TorchRec and FBGEMM."""

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
"""Supported optimizers of programs by class name, and the required values of options that NICs do
not support."""
_MADE_BY = {"SGD": "torch.optim.sgd", "RowWiseAdagrad": "torchrec.optim.rowwise_adagrad"}
"""Modules of these classes. The module of facebookresearch/dlrm's class may have any name."""
_STATES = {"RowWiseAdagrad": "sum", "RWSAdagrad": "momentum"}
"""Name of the entry with the state of each row."""
_FUSED = {"sgd": "sgd", "rowwise_adagrad": "rowwise-adagrad"}
_UNUSED_FUSED = {"weight_decay": 0, "max_norm": 0}

State = Callable[[], np.ndarray | float]
"""Function that returns the state of each row of a table, float32 ``[rows]``, in the program's
memory, or the initial state of all rows before the first step."""


@dataclass(frozen=True)
class Rule:
    """An optimizer of a NIC with its current rate.

    name, rate, epsilon: see :class:`host.dlrm.optimizer.Optimizer`; the rate may be 0.

    Raises ``ValueError`` for a number that is not finite and positive as a float32.
    """

    name: str
    rate: float
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        Optimizer(self.name, self.rate or 1.0, self.epsilon)

    @property
    def keeps(self) -> bool:
        """True if the optimizer has a state for each row."""
        return self.name != "sgd"

    def apply(self, vectors: np.ndarray, states: np.ndarray,
              sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return new vectors ``[n, d]`` and states ``[n]`` from sums ``[n, d]`` of gradients.

        The result equals a NIC's bit for bit.
        """
        return follow(self.name, self.rate, self.epsilon, vectors, states, sums)


def rule_of(optimizer: torch.optim.Optimizer, group: dict, gradient: torch.Tensor,
            closures: tuple) -> Rule:
    """Return the NICs' counterpart of a program's optimizer.

    optimizer: optimizer of the program.
    group: parameter group that contains the table.
    gradient: gradient of the table.
    closures: arguments of the step.

    Raises ``ValueError`` for an optimizer that NICs do not support.
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
        raise ValueError(f"closure of an optimizer's step must be None {_WITH}: "
                         f"compute the gradients before the step")
    if name == "SGD":
        return Rule("sgd", float(group["lr"]))
    if name == "RWSAdagrad" and not gradient.is_sparse:
        raise ValueError(f"gradients of a table must be sparse with RWSAdagrad {_WITH}: dense "
                         f"gradients have a state for each value, not for each row")
    return Rule("rowwise-adagrad", float(group["lr"]), float(group["eps"]))


def state_of(optimizer: torch.optim.Optimizer, parameter: torch.Tensor) -> State:
    """Return a function for the states of a table's rows in a program's optimizer."""
    def state() -> np.ndarray | float:
        found = optimizer.state[parameter].get(_STATES.get(type(optimizer).__name__, ""))
        if found is None:  # facebookresearch/dlrm creates states in the first step
            return float(optimizer.defaults.get("initial_accumulator_value", 0))
        return array_of(found.detach().view(-1))

    return state


def rule_of_fused(name: str, given: dict[str, Any]) -> Rule:
    """Return the NICs' counterpart of an optimizer that FBGEMM fuses.

    name: name of an operator for which :func:`sim.torch.lookups.fused.is_update` holds.
    given: its arguments by name.

    Raises ``ValueError`` for an optimizer that NICs do not support.
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
