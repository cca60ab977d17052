"""Store of the rows written in training; all other rows are computed from the seed."""

import hashlib
from collections.abc import Iterator

import numpy as np

from host.dlrm.key_index import KeyIndex
from host.dlrm.rows import row_values
from host.model import Model
from host.samples import KEY_ROW_BITS

__all__ = ["RowStore"]

_BLOCK = 1 << 16
_GROWTH = 8
"""The store grows by 1 / 8, which is also the maximum of unused memory."""


class RowStore:
    """The tables of a model: written rows, and :func:`host.dlrm.rows.row_values` for other rows.

    Parameters
    ----------
    model, seed: tables and their initial rows.

    Keys are integers, ``row | table << 36``, as in `host.samples.Samples.keys`. Each row has a
    float32 optimizer state, initially +0. Memory is proportional to the written rows.
    """

    def __init__(self, model: Model, seed: int) -> None:
        self.model = model
        self.seed = seed
        self._index = KeyIndex()
        self._vectors = np.empty((0, model.width), np.float32)
        self._states = np.empty(0, np.float32)

    def __len__(self) -> int:
        return len(self._index)

    def read(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the vectors, float32 ``[n, d]``, and optimizer states ``[n]`` of ``keys [n]``.

        Raises ``ValueError`` for a key outside the model.
        """
        found = self._index.find(keys)
        new = found < 0
        vectors = np.empty((len(keys), self.model.width), np.float32)
        states = np.zeros(len(keys), np.float32)
        vectors[new] = row_values(self.model, self.seed, keys[new] >> KEY_ROW_BITS,
                                  keys[new] & (1 << KEY_ROW_BITS) - 1)
        vectors[~new] = self._vectors[found[~new]]
        states[~new] = self._states[found[~new]]
        return vectors, states

    def write(self, keys: np.ndarray, vectors: np.ndarray, states: np.ndarray) -> None:
        """Write the rows of the distinct ``keys``, in the form that `read` returns."""
        numbers = self._index.add(keys)
        missing = len(self) - len(self._states)
        if missing > 0:
            # The operating system moves large arrays by page tables, without a second copy.
            held = len(self._states)
            size = held + max(missing, held // _GROWTH)
            self._vectors.resize((size, self.model.width), refcheck=False)
            self._states.resize(size, refcheck=False)
        self._vectors[numbers] = vectors
        self._states[numbers] = states

    def written(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the written keys, ascending, with their vectors and states."""
        keys = self._index.keys
        order = np.argsort(keys)
        return keys[order], self._vectors[order], self._states[order]

    def parts(self, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the result of `written` in parts of ``rows`` rows; do not write rows meanwhile."""
        keys = self._index.keys
        order = np.argsort(keys)
        for first in range(0, len(order), rows):
            part = order[first:first + rows]
            yield keys[part], self._vectors[part], self._states[part]

    def digest(self) -> bytes:
        """Return the SHA-256 of the written rows, in key order.

        Each row contributes its table (4 bytes), row (8) and the bits of its vector (4 each),
        little-endian. Optimizer states are not included.
        """
        hashed, dimensions = hashlib.sha256(), np.array(self.model.table_dimensions)
        for keys, vectors, _ in self.parts(_BLOCK):
            tables = keys >> KEY_ROW_BITS
            # Keys ascend: the rows of a table follow each other.
            for part in np.split(np.arange(len(keys)), np.flatnonzero(np.diff(
                    dimensions[tables])) + 1):
                dimension = int(dimensions[tables[part[0]]])
                records = np.empty(len(part), [("table", "<u4"), ("row", "<u8"),
                                               ("vector", "<f4", dimension)])
                records["table"] = tables[part]
                records["row"] = keys[part] & (1 << KEY_ROW_BITS) - 1
                records["vector"] = vectors[part, :dimension]
                hashed.update(records.tobytes())
        return hashed.digest()
