"""Formats of the vectors of a model on the wire, and the model as NICs see it.

NICs move vectors in lanes of 32 bits. A lane contains one float32, two values of 16 bits, four
codes of 8 bits, or a scale or a bias of these codes.
"""

from dataclasses import dataclass, replace

import numpy as np

from host.distinct import distinct
from host.dlrm.codecs import CODECS
from host.model import MOST_VALUES, Model, padded

__all__ = ["FLOAT32", "VectorFormat", "gradients_beside", "in_lanes", "longest", "padding_notes"]


@dataclass(frozen=True)
class VectorFormat:
    """Format of the vectors of a model.

    Members
    -------
    name: of the codec, one of `host.dlrm.codecs.CODECS`.
    dimensions: values of a vector of each table; empty only for float32.
    width: float32 values of a vector in host memory, where shorter vectors are padded with zeros;
        0 only for float32.
    """

    name: str = "float32"
    dimensions: tuple[int, ...] = ()
    width: int = 0

    @classmethod
    def of(cls, model: Model, name: str) -> "VectorFormat":
        """Return the format of the vectors of ``model`` with codec ``name``."""
        return cls(name, model.table_dimensions, model.width)

    @property
    def plain(self) -> bool:
        """Whether vectors are float32, which are unchanged."""
        return self.name == "float32"

    @property
    def lanes(self) -> int:
        """Lanes of the longest vector in NICs: 4, 8 or a multiple of 16."""
        return max(padded(CODECS[self.name].lanes(each)) for each in self.dimensions)

    def lanes_for(self, width: int) -> int:
        """Return the lanes of vectors in NICs that have ``width`` values in host memory."""
        return width if self.plain else self.lanes

    def rounded(self, vectors: np.ndarray, tables: np.ndarray) -> np.ndarray:
        """Return ``vectors``, float32 ``[n, width]``, of ``tables``, int64 ``[n]``, rounded to the
        format: float32 ``[n, width]``."""
        return vectors if self.plain else self.unpacked(self.packed(vectors, tables), tables)

    def packed(self, vectors: np.ndarray, tables: np.ndarray) -> np.ndarray:
        """Return ``vectors``, float32 ``[n, width]``, of ``tables`` as NICs take them: uint32
        ``[n, lanes]``, padded with zeros; ``vectors`` for float32."""
        if self.plain:
            return vectors
        words = np.zeros((len(vectors), self.lanes), "<u4")
        for dimension, mine in self._by_dimension(tables):
            part = CODECS[self.name].encode(vectors[mine, :dimension])
            words[mine, :part.shape[1]] = part
        return words

    def unpacked(self, words: np.ndarray, tables: np.ndarray) -> np.ndarray:
        """Return the vectors in ``words``, uint32 or float32 of these bits, ``[n, lanes]``, of
        ``tables``: float32 ``[n, width]``, padded with zeros; ``words`` for float32."""
        if self.plain:
            return words
        vectors = np.zeros((len(words), self.width), np.float32)
        for dimension, mine in self._by_dimension(tables):
            vectors[mine, :dimension] = CODECS[self.name].decode(words[mine].view("<u4"), dimension)
        return vectors

    def _by_dimension(self, tables: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Return each dimension, and whether each of ``tables`` has it."""
        sizes = np.array(self.dimensions, np.int64)[tables]
        return [(int(size), sizes == size) for size in distinct(sizes)]


FLOAT32 = VectorFormat()
"""Vectors of float32."""


def in_lanes(model: Model, name: str) -> Model:
    """Return ``model`` as NICs see it: dimensions in lanes of vectors in format ``name``."""
    lanes = CODECS[name].lanes
    if name == "float32":
        return model
    dimension = lanes(model.dimension)
    return replace(model, dimension=dimension, bottom=(*model.bottom[:-1], dimension),
                   dimensions=tuple(map(lanes, model.dimensions)))


def gradients_beside(name: str) -> str:
    """Return the usual format of gradients beside vectors in format ``name``: the range of bfloat16
    is that of float32."""
    return "float32" if name == "float32" else "bfloat16"


def longest(lanes: int, name: str) -> int:
    """Return the values of the longest vector that has at most ``lanes`` in format ``name``, at
    most `host.model.MOST_VALUES`; 0 if there is none."""
    return next((values for values in range(MOST_VALUES, 0, -1)
                 if CODECS[name].lanes(values) <= lanes), 0)


def padding_notes(model: Model, name: str) -> list[str]:
    """Return the sentence on the padding of vectors in NICs, if they pad, for format ``name``."""
    note = in_lanes(model, name).padding
    if note and name != "float32":
        note = note.replace("values", f"lanes of {name}")
    return [note] if note else []
