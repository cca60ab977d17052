"""Updates of rows by the NICs' optimizer, in place of one that FBGEMM fuses with the gradients."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from host.dlrm.exact_keys import sums_by_key
from host.dlrm.optimizer import Optimizer
from host.samples import KEY_ROW_BITS
from sim.torch.lookups.fused import Looked, features_of, optimizer_of
from sim.torch.values.updates import Written, of_keys

__all__ = ["nic_update"]


def nic_update(name: str, given: dict[str, Any]) -> Callable[[Written], None]:
    """Return what writes the rows as NICs do, to be called once FBGEMM has written them.

    Gradients of a row are summed exactly, the sum is rounded once, and then come the product with
    the rate and the difference, each rounded. FBGEMM's rows are compared with these.

    ``name``: of an operator for which :func:`sim.torch.lookups.fused.is_update` holds. ``given``:
    its arguments by their names.

    Raises ``ValueError`` for an optimizer that the NIC does not have.
    """
    optimizer = optimizer_of(name)
    if optimizer != "sgd":
        raise ValueError(f"the fused optimizer of tables must be sgd with optimizer_on nic, "
                         f"not {optimizer}")
    rate = float(given["learning_rate_tensor"])
    alike: defaultdict[int, list[Looked]] = defaultdict(list)
    for looked in features_of(given):
        alike[looked.bags.dimension].append(looked)
    gradients = given["grad_output"].detach().numpy()
    updates = [_rows(features, gradients) for features in alike.values()]

    def write(written: Written) -> None:
        for tables, bounds, rows, old, sums in updates:
            theirs = _gathered(tables, bounds, rows)
            written.steps += len(tables)
            if rate == 0:
                continue
            new, _ = Optimizer("sgd", rate).apply(old, np.empty(0, np.float32), sums)
            for values, first, last in zip(tables, bounds, bounds[1:]):
                values[rows[first:last]] = new[first:last]
            written.add(new, theirs)

    return write


def _rows(features: list[Looked], gradients: np.ndarray) -> tuple[
        list[np.ndarray], np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return of features of one dimension: the values of their tables, where the rows of each table
    begin and end among all, the rows, their vectors, and the sums of their gradients."""
    values = {looked.bags.weight.data_ptr(): looked.bags.weight.numpy() for looked in features}
    numbers = {place: number for number, place in enumerate(values)}
    keys, sums = sums_by_key(
        np.concatenate([looked.bags.rows | numbers[looked.bags.weight.data_ptr()] << KEY_ROW_BITS
                        for looked in features]),
        np.concatenate([of_keys(looked.bags, gradients[:, looked.columns])
                        for looked in features]))
    tables, rows = list(values.values()), keys & (1 << KEY_ROW_BITS) - 1
    bounds = np.searchsorted(keys >> KEY_ROW_BITS, np.arange(len(tables) + 1))
    return tables, bounds, rows, _gathered(tables, bounds, rows), sums


def _gathered(tables: list[np.ndarray], bounds: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the vectors of ``rows`` as they are now."""
    return np.concatenate([values[rows[first:last]]
                           for values, first, last in zip(tables, bounds, bounds[1:])])
