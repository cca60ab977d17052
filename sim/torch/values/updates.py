"""Updates of a program's rows by the NICs' optimizer, in place of PyTorch's."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from host.dlrm.float32 import quiet
from sim.torch.lookups.bags import Bags
from sim.torch.lookups.memory import array_of
from sim.torch.lookups.tables import Tables
from sim.torch.numerics import own_numerics
from sim.torch.values.rows import Part, Update
from sim.torch.values.rules import Rule, rule_of, state_of

__all__ = ["RowUpdates"]

_CALLS = 4096
"""The most calls that may wait for gradients."""
_CLOSE = 1e-5
"""Largest accepted difference of PyTorch's sum of a row's gradients from the exact sum, relative to
the sum of their magnitudes."""

Gradients = tuple[Bags, np.ndarray]
"""Bags, and the gradient of each bag, float32 ``[n, d]``."""


class RowUpdates:
    """Gradients of bags, collected until a step of PyTorch's optimizer.

    After PyTorch has written the rows, the NICs' optimizer replaces them.

    Parameters
    ----------
    tables: tables of the program.
    begin: called before rows are written.
    write: writes the NICs' rows.

    Methods raise ``ValueError`` for operations that NICs do not support.
    """

    def __init__(self, tables: Tables, begin: Callable[[], None],
                 write: Callable[[Sequence[Update]], None]):
        self._tables, self._begin, self._write = tables, begin, write
        self._calls: OrderedDict[int, tuple[Bags, int, ref[torch.Tensor]]] = OrderedDict()
        self._coming: defaultdict[int, list[Gradients]] = defaultdict(list)
        self._pending: defaultdict[int, list[Gradients]] = defaultdict(list)
        self._fresh: dict[int, bool] = {}
        self._watched: dict[int, tuple[ref[torch.Tensor], Any]] = {}
        self._updates: list[Update] = []

    def forward(self, bags: Bags, kept: torch.Tensor) -> None:
        """Note a call whose gradients may return.

        kept: output ``bag_size`` of the call. It identifies the gradients, because calls may share
        all inputs except the table.
        """
        weight = bags.weight
        if not (torch.is_grad_enabled() and weight.requires_grad and weight.is_leaf and len(kept)):
            return
        table = self._tables.number_of(bags)
        self._calls[kept.data_ptr()] = bags.without_rows(), table, ref(weight)
        self._calls.move_to_end(kept.data_ptr())
        if len(self._calls) > _CALLS:
            self._calls.popitem(last=False)
        if table not in self._watched or self._watched[table][0]() is None:
            self._watched[table] = ref(weight), weight.register_post_accumulate_grad_hook(
                lambda _: self._accumulated(table))
            self._pending.pop(table, None)

    def backward(self, given: dict[str, Any]) -> None:
        """Take the gradients of a call.

        given: arguments of the backward pass by name.
        """
        called = self._calls.get(given["bag_size"].data_ptr())
        if called is None:
            return
        if given["scale_grad_by_freq"]:
            raise ValueError("scale_grad_by_freq must be false with optimizer_on nic, not true")
        bags, table, weight = called
        parameter = weight()
        self._fresh[table] = self._is_zero(None if parameter is None else parameter.grad, table)
        self._coming[table].append((bags, array_of(given["grad"]).copy()))

    def _is_zero(self, gradient: torch.Tensor | None, table: int) -> bool:
        if gradient is None:
            return True
        if gradient.is_sparse:
            return gradient._nnz() == 0
        return not any(array_of(gradient)[bags.rows].any() for bags, _ in self._pending[table])

    def _accumulated(self, table: int) -> None:
        """Move returned gradients to the pending gradients of the table."""
        if self._fresh.pop(table, False):
            self._pending[table].clear()
        self._pending[table] += self._coming.pop(table, [])

    @own_numerics()
    @quiet()
    def step(self, optimizer: torch.optim.Optimizer, closures: tuple) -> None:
        """Save gradients and rows before a step of PyTorch's optimizer.

        closures: arguments of the step.
        """
        self._updates = []
        alike: defaultdict[tuple[Rule, int], list[tuple[int, torch.Tensor, Part]]]
        alike = defaultdict(list)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                table = self._tables.find(parameter)
                if table is None or parameter.grad is None or not self._pending.get(table):
                    continue
                rule = rule_of(optimizer, group, parameter.grad, closures)
                alike[rule, parameter.shape[1]].append((table, parameter, Part(
                    table, array_of(parameter),
                    state_of(optimizer, parameter) if rule.keeps else None,
                    self._pending.pop(table))))
        if not alike:
            return
        self._begin()
        with _disable_current_modes(), torch.no_grad():
            for (rule, _), tables in alike.items():
                update = Update(rule, [part for *_, part in tables], self._tables.dimension)
                bounds = _CLOSE * update.magnitudes
                for number, (table, parameter, _) in enumerate(tables):
                    mine = update.spans[number]
                    own = _own(parameter.grad, update.rows(number))
                    if own is None or _far(own, update.sums[mine], bounds[mine]):
                        raise ValueError(
                            f"gradients of the table of {self._tables.all[table].place} must "
                            f"reach its optimizer as the backward pass gives them with "
                            f"optimizer_on nic, but were changed: do not clip them or average "
                            f"them over copies of a table (DistributedDataParallel)")
                self._updates.append(update)

    @own_numerics()
    def stepped(self) -> None:
        """Replace the rows after a step of PyTorch's optimizer."""
        updates, self._updates = self._updates, []
        with _disable_current_modes(), torch.no_grad():
            if updates:
                self._write(updates)

    def close(self) -> None:
        """Remove all hooks from the program's parameters."""
        for _, hook in self._watched.values():
            hook.remove()


def _own(gradient: torch.Tensor, rows: np.ndarray) -> np.ndarray | None:
    """Return a table's gradient as gradients of ``rows``, ascending; None if other rows have
    gradients."""
    if not gradient.is_sparse:
        own = gradient[torch.from_numpy(rows)]
        return (own.numpy() if int(torch.count_nonzero(gradient)) == int(torch.count_nonzero(own))
                else None)
    places = array_of(gradient._indices()[0])
    numbers = np.minimum(np.searchsorted(rows, places), len(rows) - 1)
    if (rows[numbers] != places).any():
        return None
    values = gradient._values()
    return values.new_zeros(len(rows), gradient.shape[1]).add_(torch.sparse_coo_tensor(
        torch.from_numpy(numbers)[None], values, (len(rows), gradient.shape[1]),
        check_invariants=False)).numpy()


def _far(found: np.ndarray, sums: np.ndarray, bounds: np.ndarray) -> bool:
    return bool((np.abs(found - sums) > bounds).any())
