"""The GPU work of a mini-batch in EN and in ``bl-tuned``, as branches of graphs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from host.calibrate.gpu.device import Act, Device
from host.calibrate.gpu.driver import Word
from host.calibrate.gpu.inference import Inference, MiniBatches
from host.calibrate.gpu.native import Action
from host.calibrate.reading import Missing

__all__ = ["LIMIT_NS", "Half"]

BLOCK = 128
_MOST_BLOCKS = 1024
LIMIT_NS = 100_000_000
"""Nanoseconds after which a kernel stops waiting for a word, so that an error cannot block the GPU.
"""


class Half:
    """GPU work of several mini-batches; each mini-batch is a branch of a graph.

    Both systems have: a copy of the inputs from host memory, the bottom MLP, an interaction kernel,
    the top MLP with fused activations, and a kernel that stores predictions and a done word to host
    memory. After the bottom MLP, EN waits for a word in host memory with a single polling thread;
    distinct vectors and an index per slot are in GPU memory, as a NIC writes them. ``bl-tuned``
    looks up all tables with one kernel before the bottom MLP. A branch is sequential: on an H100, a
    graph with the wait or the lookup in parallel to the bottom MLP takes the host longer to launch,
    and increases the interval of both systems.

    Parameters
    ----------
    device: the device.
    whole: tables and MLPs.
    made: its mini-batches.
    waits: True for EN, False for ``bl-tuned``.

    Members
    -------
    words, dones: words and done words of the mini-batches, 64 bytes apart.
    predictions: the predictions.

    Raises `Missing` if PyTorch lacks a required function.
    """

    def __init__(self, device: Device, whole: Inference, made: MiniBatches, waits: bool):
        if not hasattr(device.torch, "_addmm_activation"):
            raise Missing("this PyTorch has no _addmm_activation")
        self._device, self._whole, self._waits, self._made = device, whole, waits, made
        self.count, self.samples = made.keys.shape[:2]
        torch = device.torch
        self.words, self.dones = (device.pinned(8 * self.count, torch.int64) for _ in range(2))
        self.predictions = [device.pinned(self.samples) for _ in range(self.count)]
        self._counters = device.zeros(self.count, torch.int32)
        self._first = device.on_device(made.first)
        *self._mains, self._root = device.streams(self.count + 1)
        self._launched = [device.driver.stream() for _ in range(self.count)]
        self._acts = [self._branch(nth) for nth in range(self.count)]

    def graphs(self, each: int) -> list[Action]:
        """Return the launches of graphs of ``each`` mini-batches, each in its own stream."""
        self.words.fill_(1)
        return [self._device.graph(self._together(range(at, at + each)), self._root,
                                   self._launched[at // each])
                for at in range(0, self.count, each)]

    def _together(self, numbers: range) -> Act:
        def act() -> None:
            for nth in numbers:  # fork all branches before any branch gets work
                self._device.fork(self._mains[nth])
            for nth in numbers:
                with self._device.within(self._mains[nth]):
                    self._acts[nth]()
            for nth in numbers:
                self._device.join(self._mains[nth])

        return act

    @contextmanager
    def ready(self, words: int) -> Iterator[None]:
        """Set all words to ``words`` and clear the done words; after the block, let all graphs
        finish.
        """
        self.words.fill_(words)
        self.dones.zero_()
        try:
            yield
        finally:
            self.words.fill_(1)
            for stream in self._launched:
                self._device.driver.synchronize(stream)

    def apart(self, wanted: Sequence[Any]) -> float:
        """Return the maximum difference between the predictions and ``wanted``."""
        return max(float((found - right).abs().max())
                   for found, right in zip(self.predictions, wanted))

    def _branch(self, nth: int) -> Act:
        """Return the GPU work of mini-batch ``nth``."""
        device, whole, torch = self._device, self._whole, self._device.torch
        model, dense = whole.model, self._made.dense[nth]
        inputs = [dense] if self._waits else [self._made.keys[nth], dense]
        raw = b"".join(np.ascontiguousarray(each).tobytes() for each in inputs)
        given = device.pinned(len(raw), torch.uint8)
        given.copy_(torch.frombuffer(bytearray(raw), dtype=torch.uint8))
        here = device.zeros(len(raw), torch.uint8)
        features = here[len(raw) - dense.nbytes:].view(torch.float32).view(*dense.shape)
        vectors, index, bring = (self._awaited(nth) if self._waits else
                                 self._looked_up(here.data_ptr()))
        joined = device.floats(self.samples, model.interaction_width)
        out = self.predictions[nth]

        def act() -> None:
            here.copy_(given, non_blocking=True)
            if not self._waits:
                bring()
            vector = whole.bottom(features, fused=True)
            if self._waits:
                bring()
            device.kernel("expand", "expand", self.samples, BLOCK, vectors.data_ptr(),
                          index.data_ptr(), vector.data_ptr(), joined.data_ptr(),
                          Word(self.samples), Word(model.tables), Word(1),
                          Word(model.dimension // 4))()
            found = whole.top(joined, fused=True)
            device.kernel("stores", "stores", 1, BLOCK, found.data_ptr(), out.data_ptr(),
                          Word(self.samples // 4), self._counters[nth:].data_ptr(),
                          self.dones[8 * nth:].data_ptr(), Word(1))()

        return act

    def _awaited(self, nth: int) -> tuple[Any, Any, Act]:
        """Return vectors and indices as a NIC writes them to GPU memory, and the wait for a word.
        """
        device = self._device
        keys, where = np.unique(self._made.joined[nth].reshape(-1), return_inverse=True)
        index = where.reshape(-1).astype(np.uint16).view(np.int16)
        wait = device.kernel("released", "released", 1, 1, self.words[8 * nth:].data_ptr(),
                             Word(1), LIMIT_NS)
        return self._whole.table[device.on_device(keys)], device.on_device(index), wait

    def _looked_up(self, keys: int) -> tuple[Any, Any, Act]:
        """Return a buffer for pooled vectors, their numbers, and the lookup of all tables."""
        device, model = self._device, self._whole.model
        bags = self.samples * model.tables
        pooled = device.floats(bags, model.dimension)
        index = device.on_device(np.arange(bags).astype(np.uint16).view(np.int16))
        offsets = device.on_device(np.arange(bags + 1, dtype=np.int32))
        width = model.dimension // 4
        blocks = max(1, min(-(-bags * width // BLOCK), _MOST_BLOCKS))

        def lookup() -> None:
            device.kernel("embedding", "embedding", blocks, BLOCK, self._whole.table.data_ptr(),
                          self._first.data_ptr(), keys, offsets.data_ptr(), pooled.data_ptr(),
                          Word(bags), Word(model.tables), Word(width))()

        return pooled, index, lookup
