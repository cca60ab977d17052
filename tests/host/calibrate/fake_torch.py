"""The part of PyTorch that the calibration uses, on a GPU of known times with a clock of its own.

A call costs the host time and queues work; the GPU does the work in order. Measured values can
therefore be compared with the known times of the GPU.
"""

from contextlib import contextmanager
from types import SimpleNamespace

from host.devices import dense_work, embedding_work
from host.devices.gpu_time import GpuTime
from host.devices.operation import Operation
from host.devices.software import SoftwareProfile
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile

__all__ = ["FakeTensor", "FakeTorch"]


class FakeTensor:
    """A shape on a device."""

    def __init__(self, torch, shape):
        self._torch, self.shape = torch, tuple(shape)

    def copy_(self, source, non_blocking):
        assert non_blocking
        self._torch.copied(4 * source.numel())

    def uniform_(self, low, high):
        return self

    def zero_(self):
        return self._torch.did(Operation("zero", 4 * self.numel()))

    def numel(self):
        count = 1
        for size in self.shape:
            count *= size
        return count

    def __len__(self):
        return self.shape[0]


class _Event:
    """A point in the GPU's time."""

    def __init__(self, torch):
        self._torch = torch

    def record(self):
        self.at = max(self._torch.now, self._torch.done)

    def elapsed_time(self, later):
        return (later.at - self.at) / 1e3


class FakeTorch:
    """A stand-in for the module ``torch``.

    Members: ``now``, the host's clock in microseconds; ``clock``, the same in seconds; ``done``,
        the time at which the GPU finishes its queued work.
    """

    __version__ = "fake"
    float32, int64 = "float32", "int64"

    def __init__(self, gpu: GpuProfile, pcie: PcieProfile, software: SoftwareProfile):
        self.gpu, self.pcie, self.software = gpu, pcie, software
        self.now = self.done = 0.0
        self._graph = None
        self._model = GpuTime(gpu, software)
        self.backends = SimpleNamespace(cuda=SimpleNamespace(
            matmul=SimpleNamespace(allow_tf32=True)))
        self.cuda = SimpleNamespace(
            synchronize=self._synchronize, Stream=object, stream=self._stream, graph=self._capture,
            CUDAGraph=self._new_graph, Event=lambda enable_timing: _Event(self),
            is_available=lambda: True, get_device_name=lambda: "Fake GPU-1 (PCIe)",
            get_device_capability=lambda: (9, 0), get_device_properties=lambda index:
                SimpleNamespace(multi_processor_count=72, total_memory=48 << 30, major=7, minor=5))

    def clock(self):
        return self.now / 1e6

    def manual_seed(self, seed):
        pass

    @contextmanager
    def no_grad(self):
        yield

    def empty(self, shape, dtype, device):
        return FakeTensor(self, shape)

    def zeros(self, count, dtype, device="cpu", pin_memory=False):
        return FakeTensor(self, (count,))

    def randint(self, low, high, shape, device):
        return FakeTensor(self, shape)

    def add(self, left, right, out):
        return self.did(Operation("small"))

    def relu_(self, values):
        return self.did(dense_work.elementwise(values.numel()))

    def index_select(self, table, dimension, where, out):
        assert table.shape[1] == out.shape[1] and len(where) == len(out)
        return self.did(embedding_work.gather(len(where), len(where), table.shape[1]))

    def mm(self, left, right, out):
        return self.did(dense_work.product(len(left), len(right), right.shape[1]))

    def did(self, operation):
        """Call an operator; return a tensor, whatever its shape."""
        if self._graph is not None:
            self._graph.nodes.append(operation)
        else:
            self.now += self.software.operator_us
            self._queue(operation)
        return FakeTensor(self, (1,))

    def copied(self, size):
        self.now += self.software.copy_us
        self.done = max(self.done, self.now) + size / (self.pcie.bandwidth_gb_s * 1e3)

    def _queue(self, operation):
        self.done = max(self.done, self.now + self.gpu.launch_us) + self._model.work_us(operation)

    def _synchronize(self):
        self.now = max(self.now, self.done) + self.software.synchronize_us

    @contextmanager
    def _stream(self, stream):
        yield

    def _new_graph(self):
        graph = SimpleNamespace(nodes=[])
        graph.replay = lambda: self._replay(graph)
        return graph

    @contextmanager
    def _capture(self, graph, stream=None):
        self._graph = graph
        yield
        self._graph = None

    def _replay(self, graph):
        self.now += self.software.graph_us
        for operation in graph.nodes:
            self._queue(operation)
