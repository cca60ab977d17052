"""A whole DLRM in PyTorch on one device, from inputs to predictions in host memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from host.calibrate.gpu.device import Device
from host.data.generator import generate
from host.model import Model
from host.samples import concatenate

__all__ = ["Inference", "MiniBatches", "mini_batches"]


@dataclass(frozen=True)
class MiniBatches:
    """Consecutive mini-batches of samples with one key per table.

    Members
    -------
    dense: float32 ``[mini-batches, samples, dense features]``.
    keys: int64 ``[mini-batches, samples, tables]``, rows within their tables.
    rows: rows of each table; fewer than the model's if scaled.
    first: int64, base of each table in a concatenation of all tables.
    """

    dense: np.ndarray
    keys: np.ndarray
    rows: tuple[int, ...]
    first: np.ndarray

    @property
    def joined(self) -> np.ndarray:
        """Keys as rows of the concatenation of all tables: int64, shape of ``keys``."""
        return self.keys + self.first


def mini_batches(model: Model, samples: int, count: int, scale: float = 1.0,
                 seed: int = 0) -> MiniBatches:
    """Return ``count`` mini-batches of ``samples`` generated samples.

    scale: fraction of the rows of each table that exist; larger keys wrap around.
    """
    rows = tuple(max(1, int(size * scale)) for size in model.rows)
    made = concatenate(generate(model, samples * count, seed))
    keys = made.rows.reshape(count, samples, model.tables) % np.array(rows, np.int64)
    first = np.concatenate([[0], np.cumsum(rows)[:-1]]).astype(np.int64)
    return MiniBatches(made.dense.reshape(count, samples, -1), keys, rows, first)


class Inference:
    """Inference of ``model`` as in facebookresearch/dlrm, one operator at a time.

    The inputs of a mini-batch are a packed array: keys by table, then dense features.

    Parameters: ``device``; ``model``; ``made``, the mini-batches.
    """

    def __init__(self, device: Device, model: Model, made: MiniBatches):
        torch = self._torch = device.torch
        self.device, self.model = device, model
        self.samples = made.keys.shape[1]
        vectors = model.tables + 1
        self.table = device.floats(sum(made.rows), model.dimension)
        self.tables = self.table.split(made.rows)
        self._bottom, self._top = ([(device.floats(*shape), device.floats(shape[1]))
                                    for shape in layers]
                                   for layers in (model.bottom_layers, model.top_layers))
        self._row, self._column = torch.tril_indices(vectors, vectors, -1, device=device.kind)
        self._starts = torch.arange(0, self.samples, device=device.kind)
        self.inputs = [self._packed(dense, keys) for dense, keys in zip(made.dense, made.keys)]
        self.input = device.zeros(len(self.inputs[0]), torch.uint8)
        self.output = device.pinned(self.samples)

    def _packed(self, dense: np.ndarray, keys: np.ndarray) -> Any:
        """Return a mini-batch's inputs as bytes in page-locked memory."""
        raw = np.ascontiguousarray(keys.T).tobytes() + np.ascontiguousarray(dense).tobytes()
        place = self.device.pinned(len(raw), self._torch.uint8)
        place.copy_(self._torch.frombuffer(bytearray(raw), dtype=self._torch.uint8))
        return place

    def bottom(self, dense: Any, fused: bool = False) -> Any:
        """Apply the bottom MLP."""
        return self._network(self._bottom, dense, fused, sigmoid=False)

    def top(self, interaction: Any, fused: bool = False) -> Any:
        """Apply the top MLP: predictions ``[samples, 1]``."""
        return self._network(self._top, interaction, fused, sigmoid=True)

    def eager(self, nth: int) -> None:
        """Predict mini-batch ``nth`` operator by operator, with separate copies of keys and dense
        features.
        """
        torch, model, key_bytes = self._torch, self.model, 8 * self.samples * self.model.tables
        source = self.inputs[nth]
        for part in (slice(key_bytes), slice(key_bytes, None)):
            self.input[part].copy_(source[part], non_blocking=True)
        keys = self.input[:key_bytes].view(torch.int64).view(model.tables, self.samples)
        dense = self.input[key_bytes:].view(torch.float32).view(self.samples, model.dense)
        vector = self.bottom(dense)
        pooled = [torch.nn.functional.embedding_bag(keys[table], weight, self._starts, mode="sum")
                  for table, weight in enumerate(self.tables)]
        joined = torch.cat([vector, *pooled], 1).view(self.samples, -1, model.dimension)
        square = torch.bmm(joined, joined.transpose(1, 2))
        interaction = torch.cat([vector, square[:, self._row, self._column]], 1)
        self.output.copy_(self.top(interaction).view(-1), non_blocking=True)

    def _network(self, layers: Sequence[tuple[Any, Any]], data: Any, fused: bool,
                 sigmoid: bool) -> Any:
        """Apply an MLP with a ReLU after each layer.

        layers: weight (inputs by outputs) and bias of each layer.
        sigmoid: whether the last layer has a sigmoid instead of a ReLU.
        fused: whether bias and ReLU are part of the product.
        """
        torch = self._torch
        for index, (weight, bias) in enumerate(layers):
            if sigmoid and index == len(layers) - 1:
                data = torch.sigmoid(torch.addmm(bias, data, weight))
            elif fused:
                data = torch._addmm_activation(bias, data, weight, use_gelu=False)
            else:
                data = torch.relu(torch.addmm(bias, data, weight))
        return data
