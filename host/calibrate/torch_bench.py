"""Benchmarks of PyTorch operators on one of its devices."""

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

from host.calibrate.readings import DIMENSION, Readings
from host.calibrate.stopwatch import Stopwatch
from host.devices import dense_work, embedding_work
from host.devices.operation import Operation
from host.model import Model

__all__ = ["Sizes", "TorchBench"]

_SMALL = 16
"""Values of an operator so small that only its call takes time."""
_NODES = 32
"""Kernels of a graph, and calls in a series."""


class Sizes:
    """Sizes of the large operators for a GPU; ``scale`` shrinks them.

    Members: ``values`` of element-wise operators, ``table`` rows and ``rows`` gathered from them,
    ``side`` of matrices, ``copied`` bytes.
    """

    def __init__(self, scale: float = 1.0):
        self.values = max(1024, int(scale * (1 << 28)))
        self.table = max(1024, int(scale * (1 << 25)))
        self.rows = max(256, int(scale * (1 << 22)))
        self.side = max(32, int(8192 * scale**(1 / 3)))
        self.copied = max(1024, int(scale * (1 << 28)))


class TorchBench:
    """Times the operators of a device. No gradients are tracked, products are float32.

    Parameters: ``torch``, the module; ``device``, ``cuda``, or ``cpu`` for tests, where nothing is
    asynchronous and there are no graphs; ``repeats``; ``clock``, which returns seconds.
    """

    def __init__(self, torch: Any, device: str, repeats: int = 7,
                 clock: Callable[[], float] = perf_counter):
        self.torch = torch
        self.device = device
        self._asynchronous = device != "cpu"
        self._waited = Stopwatch(repeats, wait=self._wait, clock=clock)
        self._free = Stopwatch(repeats, clock=clock)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.manual_seed(0)

    def readings(self, sizes: Sizes) -> Readings:
        """Measure what :func:`host.calibrate.readings.derive_profiles` needs."""
        torch, large = self.torch, self._waited
        small = self._floats(_SMALL)
        node, graph = self._graph(lambda: torch.add(small, small, out=small))
        # Few enough calls not to fill the driver's queue, which would make the host wait.
        call = self._queued(lambda: torch.add(small, small, out=small))
        return Readings(
            call, large.us(lambda: torch.add(small, small, out=small), 1),
            large.us(lambda: None, 1), node, graph, sizes.values,
            self._elementwise_us(sizes.values), sizes.rows, self._gather_us(sizes), sizes.side,
            self._product_us(sizes.side), self._copy_us(4 * _SMALL, _NODES), sizes.copied,
            self._copy_us(sizes.copied, 1), large.repeats)

    def cases(self, model: Model, samples: int) -> Iterator[
            tuple[str, tuple[Operation, ...], Callable[[], object]]]:
        """Yield the operators of ``model``: name with size, operations of the model, action.

        Each action calls as many operators as there are operations.
        """
        torch, floats = self.torch, self._floats
        tables, width = model.tables, model.dimension
        lookups, vectors = samples * tables, tables + 1
        table, where = floats(1 << 20, width), self._indices(lookups, 1 << 20)
        offsets = torch.arange(0, lookups, device=self.device)
        bag = torch.nn.functional.embedding_bag
        yield (f"gather {lookups} rows of {4 * width} B",
               (embedding_work.gather(lookups, lookups, width),),
               lambda: bag(where, table, offsets, mode="sum"))
        for inputs, outputs in (*model.bottom_layers, *model.top_layers):
            data, weight, bias = floats(samples, inputs), floats(inputs, outputs), floats(outputs)
            yield (f"linear {samples} x {inputs} x {outputs}",
                   (dense_work.linear(samples, inputs, outputs),),
                   lambda data=data, weight=weight, bias=bias: torch.addmm(bias, data, weight))
        first = floats(samples, 512)
        yield (f"elementwise {first.numel()}", (dense_work.elementwise(first.numel()),),
               lambda: torch.relu(first))
        parts = [floats(samples, width) for _ in range(vectors)]
        yield (f"concat {vectors} of {samples} x {width}",
               (dense_work.concat(samples * vectors * width),), lambda: torch.cat(parts, 1))
        joined = floats(samples, vectors, width)
        yield (f"transpose {samples} x {vectors} x {width}",
               (dense_work.transpose(joined.numel()),),
               lambda: joined.transpose(1, 2).contiguous())
        row, column = torch.tril_indices(vectors, vectors, -1, device=self.device)
        forward = dense_work.interaction(samples, model)
        turned, square = joined.transpose(1, 2), floats(samples, vectors, vectors)
        yield (f"pairs {samples} x {vectors} x {width}", forward[1:2],
               lambda: torch.bmm(joined, turned))
        yield (f"flatten {samples} x {len(row)}", forward[2:3], lambda: square[:, row, column])
        yield (f"pairs_backward {samples} x {vectors} x {width}",
               dense_work.interaction_backward(samples, model)[2:3],
               lambda: torch.bmm(square, joined))
        yield (f"layout {lookups} indices", (embedding_work.layout(lookups),),
               lambda: where.view(tables, -1).t().contiguous())
        yield (f"unique {lookups} keys", (embedding_work.unique(lookups),),
               lambda: torch.unique(where, return_inverse=True))
        gradients = floats(lookups, width)
        groups = where % max(1, lookups // 2)
        sums = floats(max(1, lookups // 2), width)
        yield (f"segment_sum {lookups} vectors of {4 * width} B",
               (embedding_work.segment_sum(lookups, len(sums), width),),
               lambda: sums.index_add_(0, groups, gradients))
        yield (f"scatter_update {lookups} rows of {4 * width} B",
               (embedding_work.scatter_update(lookups, width),),
               lambda: table.index_add_(0, where, gradients, alpha=-0.1))

    def us(self, action: Callable[[], object]) -> float:
        """Return the microseconds of one ``action`` with its wait."""
        return self._waited.us(action, 1)

    def _wait(self) -> None:
        if self._asynchronous:
            self.torch.cuda.synchronize()

    def _queued(self, action: Callable[[], object]) -> float:
        """Return the host's microseconds per action, for `_NODES` actions without a wait."""

        def row() -> None:
            for _ in range(_NODES):
                action()

        times = []
        for _ in range(2 * self._free.repeats):
            self._wait()
            times.append(self._free.us_once(row) / _NODES)
        return sorted(times)[len(times) // 2]

    def _graph(self, action: Callable[[], object]) -> tuple[float, float]:
        """Return the microseconds of a kernel inside a graph, and the host's per graph launch."""
        if not self._asynchronous:
            us = self._free.us(action)
            return us, us
        torch, graph = self.torch, self.torch.cuda.CUDAGraph()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            action()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            for _ in range(_NODES):
                action()
        launches = []
        for _ in range(2 * self._free.repeats):
            self._wait()
            launches.append(self._free.us_once(graph.replay))
        # Back-to-back graphs are limited by the device, which hides the launches.
        return self._waited.us(graph.replay, _NODES) / _NODES, sorted(launches)[len(launches) // 2]

    def _elementwise_us(self, count: int) -> float:
        values = self._floats(count)
        return self.us(lambda: self.torch.relu_(values))

    def _gather_us(self, sizes: Sizes) -> float:
        table, where = self._floats(sizes.table, DIMENSION), self._indices(sizes.rows, sizes.table)
        taken = self._floats(sizes.rows, DIMENSION)
        return self.us(lambda: self.torch.index_select(table, 0, where, out=taken))

    def _product_us(self, side: int) -> float:
        left, result = self._floats(side, side), self._floats(side, side)
        return self.us(lambda: self.torch.mm(left, left, out=result))

    def _copy_us(self, size: int, times: int) -> float:
        torch = self.torch
        source = torch.ones(size // 4, dtype=torch.float32, pin_memory=self._asynchronous)
        target = self._floats(size // 4)
        return self._waited.us(lambda: target.copy_(source, non_blocking=True), times)

    def _floats(self, *shape: int) -> Any:
        return self.torch.ones(shape, dtype=self.torch.float32, device=self.device)

    def _indices(self, count: int, most: int) -> Any:
        return self.torch.randint(0, most, (count,), device=self.device)
