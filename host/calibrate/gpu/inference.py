"""A whole DLRM in PyTorch on one device, from inputs to predictions in host memory."""

from typing import Any

import numpy as np

from host.calibrate.gpu.device import Device
from host.calibrate.gpu.layers import forward, layers_of
from host.calibrate.gpu.traffic import MiniBatches
from host.model import Model

__all__ = ["Inference"]


class Inference:
    """Inference of ``model`` as facebookresearch/dlrm does it, and with one lookup for all tables.

    The inputs of a mini-batch are one packed array: its keys by table, then its dense features.
    Each method of a part takes what :meth:`unpacked` returns or earlier parts do.

    Parameters
    ----------
    device, model. made: the mini-batches. share: of another object, whose tables and weights this
        one uses.
    """

    def __init__(self, device: Device, model: Model, made: MiniBatches,
                 share: "Inference | None" = None):
        torch = self._torch = device.torch
        self.device, self.model = device, model
        self.samples = made.keys.shape[1]
        vectors = model.tables + 1
        if share:
            self.table, self._bottom, self._top = share.table, share._bottom, share._top
        else:
            self.table = device.floats(sum(made.rows), model.dimension)
            self._bottom = layers_of(device, model.bottom_layers)
            self._top = layers_of(device, model.top_layers)
        self.tables = self.table.split(made.rows)
        self._first = device.on_device(made.first)[:, None]
        self._row, self._column = torch.tril_indices(vectors, vectors, -1, device=device.kind)
        self._starts = torch.arange(0, self.samples * model.tables, device=device.kind)
        self.inputs = [self._packed(dense, keys) for dense, keys in zip(made.dense, made.keys)]
        self.input = device.zeros(len(self.inputs[0]), torch.uint8)
        self.output = device.pinned(self.samples)

    def _packed(self, dense: np.ndarray, keys: np.ndarray) -> Any:
        """Return a mini-batch's inputs as bytes in page-locked memory."""
        raw = np.ascontiguousarray(keys.T).tobytes() + np.ascontiguousarray(dense).tobytes()
        place = self.device.pinned(len(raw), self._torch.uint8)
        place.copy_(self._torch.frombuffer(bytearray(raw), dtype=self._torch.uint8))
        return place

    @property
    def key_bytes(self) -> int:
        """Bytes of the keys, before the dense features."""
        return 8 * self.samples * self.model.tables

    def unpacked(self) -> tuple[Any, Any]:
        """Return the keys ``[tables, samples]`` and the dense features on the device, as views."""
        keys = self.input[:self.key_bytes].view(self._torch.int64)
        dense = self.input[self.key_bytes:].view(self._torch.float32)
        return (keys.view(self.model.tables, self.samples),
                dense.view(self.samples, self.model.dense))

    def lookups(self, keys: Any) -> Any:
        """Look up each table by itself: a list of ``[samples, dimension]``."""
        bag, starts = self._torch.nn.functional.embedding_bag, self._starts[:self.samples]
        return [bag(keys[table], weight, starts, mode="sum")
                for table, weight in enumerate(self.tables)]

    def lookup(self, keys: Any) -> Any:
        """Look up all tables at once: a list of ``[samples, dimension]``, as views."""
        joined = (keys + self._first).view(-1)
        pooled = self._torch.nn.functional.embedding_bag(joined, self.table, self._starts,
                                                         mode="sum")
        return list(pooled.view(self.model.tables, self.samples, -1))

    def bottom(self, dense: Any, fused: bool = False) -> Any:
        """Apply the bottom MLP."""
        return forward(self._torch, self._bottom, dense, fused, sigmoid=False)

    def interaction(self, dense: Any, pooled: list[Any]) -> Any:
        """Return the dense vectors with the dot products of all pairs."""
        torch, width = self._torch, self.model.dimension
        joined = torch.cat([dense, *pooled], 1).view(self.samples, -1, width)
        square = torch.bmm(joined, joined.transpose(1, 2))
        return torch.cat([dense, square[:, self._row, self._column]], 1)

    def top(self, interaction: Any, fused: bool = False) -> Any:
        """Apply the top MLP: predictions ``[samples, 1]``."""
        return forward(self._torch, self._top, interaction, fused)

    def copy_in(self, nth: int, calls: int = 1) -> None:
        """Copy the inputs of mini-batch ``nth`` to the device, in one piece or in two."""
        source = self.inputs[nth % len(self.inputs)]
        for part in ((slice(None),) if calls == 1 else
                     (slice(self.key_bytes), slice(self.key_bytes, None))):
            self.input[part].copy_(source[part], non_blocking=True)

    def eager(self, nth: int) -> None:
        """Predict mini-batch ``nth`` operator by operator; keys and dense are copied apart."""
        self.copy_in(nth, 2)
        keys, dense = self.unpacked()
        vector = self.bottom(dense)
        predictions = self.top(self.interaction(vector, self.lookups(keys)))
        self.output.copy_(predictions.view(-1), non_blocking=True)

    def compute(self, fused: bool = False) -> Any:
        """Predict what is in ``input``, with one lookup for all tables; what a graph holds."""
        keys, dense = self.unpacked()
        return self.top(self.interaction(self.bottom(dense, fused), self.lookup(keys)), fused)
