"""Updates of a program's rows by the NICs' optimizer, in place of PyTorch's."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from host.dlrm.exact_keys import sums_by_key
from host.dlrm.optimizer import Optimizer
from host.samples import KEY_ROW_BITS
from sim.torch.lookups.bags import Bags
from sim.torch.lookups.tables import Tables

__all__ = ["RowUpdates", "Written", "of_keys"]

_UNUSED = {"momentum": 0, "weight_decay": 0, "maximize": False}
"""What PyTorch's SGD has and the NIC's has not."""
_CALLS = 4096
"""Calls whose gradients may still come back."""
_CLOSE = 1e-5
"""How far PyTorch's sum of a row's gradients may be from the exact one, as a share of the sum of
their magnitudes."""


@dataclass
class Written:
    """Rows that the NICs' optimizer wrote.

    Members: ``steps`` of tables; ``rows``; ``equal``, of them, as PyTorch's SGD makes them bit for
    bit; ``most``, the largest difference of a value as a share of the largest of its row.
    """

    steps: int = 0
    rows: int = 0
    equal: int = 0
    most: float = 0.0

    def add(self, ours: np.ndarray, theirs: np.ndarray) -> None:
        """Count rows ``[n, d]``, and compare them with those of PyTorch's SGD, or FBGEMM's."""
        self.rows += len(ours)
        different = (ours.view(np.uint32) != theirs.view(np.uint32)).any(axis=1)
        self.equal += int((~different).sum())
        if different.any():
            ours, theirs = ours[different], theirs[different]
            with np.errstate(all="ignore"):
                shares = np.abs(ours.astype(np.float64) - theirs).max(axis=1) / (
                    np.abs(theirs).max(axis=1))
            self.most = max(self.most, float(np.nanmax(shares, initial=0.0)))

    def with_(self, more: "Written") -> "Written":
        """Return this and what another process wrote."""
        return Written(self.steps + more.steps, self.rows + more.rows, self.equal + more.equal,
                       max(self.most, more.most))

    def to_json(self) -> dict:
        """Return plain values."""
        return {"optimizer": "sgd", "steps": self.steps, "rows": self.rows, "equal": self.equal,
                "most_difference": self.most}


class RowUpdates:
    """Gradients of bags, collected until a step of PyTorch's optimizer, which then finds none.

    In its place, a table's rows are updated as NICs do it, bit for bit: gradients of a row are
    summed exactly, the sum is rounded once, and then come the product with the rate and the
    difference, each rounded.

    Parameters
    ----------
    tables: of the program. write: called before rows are written. written: counts them.

    Methods raise ``ValueError`` for what no NIC does.
    """

    def __init__(self, tables: Tables, write: Callable[[], None], written: Written):
        self._tables, self._write, self._written = tables, write, written
        self._calls: OrderedDict[int, tuple[Bags, int]] = OrderedDict()
        self._coming: defaultdict[int, list[tuple[np.ndarray, np.ndarray]]] = defaultdict(list)
        self._pending: defaultdict[int, list[tuple[np.ndarray, np.ndarray]]] = defaultdict(list)
        self._fresh: dict[int, bool] = {}
        self._watched: dict[int, Any] = {}
        self._hidden: list[tuple[torch.Tensor, torch.Tensor]] = []

    def forward(self, bags: Bags, kept: torch.Tensor) -> None:
        """Take note of a call whose gradients may come back. ``kept``: its output ``bag_size``,
        by which they are recognised; calls may share all their inputs but the table."""
        weight = bags.weight
        if not (torch.is_grad_enabled() and weight.requires_grad and weight.is_leaf and len(kept)):
            return
        table = self._tables.number_of(bags)
        self._calls[kept.data_ptr()] = bags, table
        self._calls.move_to_end(kept.data_ptr())
        if len(self._calls) > _CALLS:
            self._calls.popitem(last=False)
        if table not in self._watched:
            self._watched[table] = weight.register_post_accumulate_grad_hook(
                lambda _: self._accumulated(table))

    def backward(self, given: dict[str, Any]) -> None:
        """Take the gradients of a call; ``given``: arguments of the backward pass by name."""
        called = self._calls.get(given["bag_size"].data_ptr())
        if called is None:
            return
        if given["scale_grad_by_freq"]:
            raise ValueError("scale_grad_by_freq must be false with optimizer_on nic, not true")
        bags, table = called
        self._fresh[table] = self._is_zero(bags.weight.grad, table)
        self._coming[table].append((bags.rows, of_keys(bags, given["grad"].detach().numpy())))

    def _is_zero(self, gradient: torch.Tensor | None, table: int) -> bool:
        if gradient is None:
            return True
        if gradient.is_sparse:
            return gradient._nnz() == 0
        return not any(gradient.numpy()[rows].any() for rows, _ in self._pending[table])

    def _accumulated(self, table: int) -> None:
        """What came back is in the table's gradient now."""
        if self._fresh.pop(table, False):
            self._pending[table].clear()
        self._pending[table] += self._coming.pop(table, [])

    def step(self, optimizer: torch.optim.Optimizer, closures: tuple) -> None:
        """Update rows, and hide their gradients from a step of PyTorch's optimizer that begins.

        ``closures``: arguments of the step.
        """
        alike: defaultdict[tuple, list[tuple[int, torch.Tensor]]] = defaultdict(list)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                table = self._tables.find(parameter)
                if table is None or parameter.grad is None or not self._pending.get(table):
                    continue
                _check(optimizer, group, closures)
                alike[parameter.shape[1], float(group["lr"])].append((table, parameter))
        with _disable_current_modes(), torch.no_grad():
            updates = [self._new_rows(tables, rate) for (_, rate), tables in alike.items()]
            if updates:
                self._write()
            for parameter, rows, new in chain(*updates):
                parameter.index_copy_(0, rows, new)
        for _, parameter in chain(*alike.values()):
            self._hidden.append((parameter, parameter.grad))
            parameter.grad = None

    def stepped(self) -> None:
        """The step is over: the gradients are where the program expects them."""
        for parameter, gradient in self._hidden:
            parameter.grad = gradient
        self._hidden.clear()

    def close(self) -> None:
        """Leave the program's parameters as they were found."""
        self.stepped()
        for hook in self._watched.values():
            hook.remove()

    def _new_rows(self, tables: list[tuple[int, torch.Tensor]], rate: float
                  ) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Return the rows to be written of tables of one dimension: of each its parameter, the
        rows' numbers, and their vectors."""
        numbered = [(rows | number << KEY_ROW_BITS, gradients)
                    for number, (table, _) in enumerate(tables)
                    for rows, gradients in self._pending.pop(table)]
        all_keys, gradients = map(np.concatenate, zip(*numbered))
        keys, sums = sums_by_key(all_keys, gradients)
        bounds = _CLOSE * _magnitudes(all_keys, gradients)
        ends = np.searchsorted(keys >> KEY_ROW_BITS, np.arange(len(tables) + 1))
        rows = keys & (1 << KEY_ROW_BITS) - 1
        self._written.steps += len(tables)
        parts, old, theirs = [], [], []
        for (table, parameter), first, last in zip(tables, ends, ends[1:]):
            mine = slice(int(first), int(last))
            own = _own(parameter.grad, rows[mine])
            if own is None or _far(torch.zeros(sums[mine].shape).add_(own).numpy(), sums[mine],
                                   bounds[mine]):
                raise ValueError(
                    f"gradients of the table of {self._tables.all[table].place} must reach its "
                    f"optimizer as the backward pass gives them with optimizer_on nic, but are "
                    f"others")
            numbers = torch.from_numpy(rows[mine])
            parts.append((parameter, numbers, mine))
            old.append(parameter.detach()[numbers])
            theirs.append(old[-1].clone().add_(own, alpha=-rate).numpy())
        if rate == 0:
            return []
        new, _ = Optimizer("sgd", rate).apply(
            torch.cat(old).numpy(), np.empty(0, np.float32), sums)
        self._written.add(new, np.concatenate(theirs))
        return [(parameter, numbers, torch.from_numpy(new[mine]))
                for parameter, numbers, mine in parts]


def of_keys(bags: Bags, gradients: np.ndarray) -> np.ndarray:
    """Return the gradient of each key, float32 ``[k, d]``, from those of bags."""
    if bags.pooling == "mean":
        gradients = gradients / np.maximum(bags.lengths, 1).astype(np.float32)[:, None]
    each = np.repeat(gradients, bags.lengths, axis=0)
    return each if bags.weights is None else each * bags.weights[:, None]


def _check(optimizer: torch.optim.Optimizer, group: dict, closures: tuple) -> None:
    """Raise ``ValueError`` for an optimizer that the NIC does not have."""
    if type(optimizer) is not torch.optim.SGD:
        raise ValueError(f"the optimizer of a table must be SGD with optimizer_on nic, "
                         f"not {type(optimizer).__name__}")
    for name, unused in _UNUSED.items():
        if group[name] != unused:
            raise ValueError(f"{name} of the optimizer of a table must be {unused} with "
                             f"optimizer_on nic, not {group[name]!r}")
    if any(callable(each) for each in closures):
        raise ValueError("closure of an optimizer's step must be None with optimizer_on nic, "
                         "which takes the gradients that are there before it")


def _own(gradient: torch.Tensor, rows: np.ndarray) -> torch.Tensor | None:
    """Return a table's gradient in PyTorch as one of ``rows`` alone, ascending; None where other
    rows have one."""
    if not gradient.is_sparse:
        own = gradient[torch.from_numpy(rows)]
        return own if int(torch.count_nonzero(gradient)) == int(torch.count_nonzero(own)) else None
    places = gradient._indices()[0].numpy()
    numbers = np.minimum(np.searchsorted(rows, places), len(rows) - 1)
    if (rows[numbers] != places).any():
        return None
    return torch.sparse_coo_tensor(torch.from_numpy(numbers)[None], gradient._values(),
                                   (len(rows), gradient.shape[1]), check_invariants=False)


def _magnitudes(keys: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    """Return for each key, ascending, the sum of the magnitudes of its gradients."""
    if not len(keys):
        return gradients
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return np.add.reduceat(np.abs(gradients[order]), starts)


def _far(found: np.ndarray, sums: np.ndarray, bounds: np.ndarray) -> bool:
    with np.errstate(invalid="ignore"):
        return bool((np.abs(found - sums) > bounds).any())
