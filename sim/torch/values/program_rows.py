"""A program's tensors as rows and states in GPU memory, which training NICs write."""

from collections.abc import Mapping

import numpy as np

from host.dlrm.row_store import RowStore
from host.model import Model
from host.samples import KEY_ROW_BITS
from host.wire.rows import GivenRows

__all__ = ["ProgramRows"]


class ProgramRows(RowStore):
    """Row store in a program's tensors.

    model: model of the NICs.
    rows: rows of the program.
    states: member; states of a table's rows by table number, float32 ``[rows]``, in the program's
        memory. Tables without states are absent.
    """

    def __init__(self, model: Model, rows: GivenRows):
        super().__init__(model, 0)
        self._rows = rows
        self.states: Mapping[int, np.ndarray] = {}

    def read(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the current vectors, float32 ``[n, d]``, and states ``[n]`` of ``keys``.

        Vectors are padded with +0. The state of a row without state is +0.
        """
        tables, rows = keys >> KEY_ROW_BITS, keys & (1 << KEY_ROW_BITS) - 1
        states = np.zeros(len(keys), np.float32)
        for number, own in self.states.items():
            mine = tables == number
            states[mine] = own[rows[mine]]
        return self._rows.read(tables, rows, self.model.dimension), states

    def write(self, keys: np.ndarray, vectors: np.ndarray, states: np.ndarray) -> None:
        """Write the rows of distinct ``keys`` to the program's tensors, without padding."""
        tables, rows = keys >> KEY_ROW_BITS, keys & (1 << KEY_ROW_BITS) - 1
        for number in np.unique(tables).tolist():
            mine = tables == number
            values = self._rows.tables[number]
            values[rows[mine]] = vectors[mine, :values.shape[1]]
            if number in self.states:
                self.states[number][rows[mine]] = states[mine]
