"""Access of a measurement to a machine: timed PyTorch operators and custom kernels.

A measurement is a function of a `Device` that yields readings. It runs on a GPU, on PyTorch's CPU
device (for tests: synchronous, and without CUDA), and on simulated devices of the tests.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Any

from host.calibrate.gpu.driver import Driver
from host.calibrate.gpu.native import Action
from host.calibrate.reading import Missing
from host.calibrate.stopwatch import Stopwatch

__all__ = ["ROUNDS", "Act", "Device", "Sizes"]

Act = Callable[[], object]

ROUNDS = 32
"""Calls in a series without waiting: few enough not to fill the driver's queue."""

_FILLER = 2048
"""Width of the matrix product that keeps the GPU busy while the host queues work."""


class Sizes:
    """Sizes of objects in GPU memory; ``scale`` shrinks them.

    Members
    -------
    values: values of element-wise operators.
    table_values: values of the table that gathers read.
    rows: rows of a gather whose rate is measured.
    side: width of matrices.
    copied: bytes of copies.
    """

    def __init__(self, scale: float = 1.0):
        self.scale = scale
        self.values = max(1024, int(scale * (1 << 28)))
        self.table_values = max(1 << 14, int(scale * (1 << 29)))
        self.rows = max(256, int(scale * (1 << 22)))
        self.side = max(32, int(8192 * scale**(1 / 3)))
        self.copied = max(1024, int(scale * (1 << 28)))

    def of(self, count: int, least: int = 1) -> int:
        """Return ``count`` at this scale."""
        return max(least, int(count * self.scale))


class Device:
    """A device of PyTorch, without gradient tracking and with float32 products.

    Parameters
    ----------
    torch: the module.
    kind: ``cuda`` or ``cpu``.
    repeats: measurements of each time.
    sizes: see `Sizes`.
    clock: returns seconds.
    driver: replaces the CUDA driver; or a `Missing` with the reason why none exists.
    """

    def __init__(self, torch: Any, kind: str, repeats: int = 7, sizes: Sizes | None = None,
                 clock: Callable[[], float] = perf_counter,
                 driver: Driver | Missing | None = None):
        self.torch, self.kind, self.repeats = torch, kind, repeats
        self.sizes = sizes or Sizes()
        self.cuda = kind == "cuda"
        self._waited = Stopwatch(repeats, wait=self.wait, clock=clock)
        self._free = Stopwatch(repeats, clock=clock)
        self._driver, self._clock = driver, clock
        self._flusher = self._busy = None
        self._kept: list[Any] = []  # graphs that the driver launches
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.manual_seed(0)

    @property
    def driver(self) -> Driver:
        """The CUDA driver. Raises `Missing` if it, or a part of it, is absent."""
        if self._driver is None:
            try:
                if not self.cuda:
                    raise Missing("requires a CUDA device")
                self.floats(1)  # PyTorch creates the context of the driver
                self.wait()
                major, minor = self.torch.cuda.get_device_capability()
                self._driver = Driver(10 * major + minor)
            except Missing as missing:
                self._driver = missing
        if isinstance(self._driver, Missing):
            raise self._driver
        return self._driver

    def kernel(self, source: str, name: str, grid: int, block: int, *arguments: Any) -> Act:
        """Return a function that launches a custom kernel in PyTorch's current stream, see
        `Driver`.

        Raises `Missing` if the CUDA driver, or a part of it, is absent.
        """
        return self.driver.inside(self._stream, source, name, grid, block, *arguments)

    def _stream(self) -> int:
        return self.torch.cuda.current_stream().cuda_stream if self.cuda else 0

    def wait(self) -> None:
        """Wait until the device is idle."""
        if self.cuda:
            self.torch.cuda.synchronize()

    def times(self, action: Act, rounds: int = 1) -> list[float]:
        """Return the microseconds of ``action``, with one wait after each series of ``rounds``."""
        return self._waited.all_us(action, rounds)

    def queued(self, action: Act, rounds: int = ROUNDS) -> list[float]:
        """Return the host's microseconds of ``action``, without waiting for the device."""

        def row() -> None:
            for _ in range(rounds):
                action()

        row()  # warms up
        times = []
        for _ in range(2 * self.repeats):
            self.wait()
            times.append(self._free.us_once(row) / rounds)
        self.wait()
        return times

    def single(self, action: Act) -> list[float]:
        """Return the host's microseconds of one ``action`` on an idle device, without waiting."""
        action()
        times = []
        for _ in range(4 * self.repeats):
            self.wait()
            times.append(self._free.us_once(action))
        self.wait()
        return times

    def capture(self, actions: Sequence[Act]) -> Act:
        """Return a function that runs all ``actions``: on a GPU, the launch of a graph.

        Each graph is captured in its own stream, because libraries keep working memory with
        semaphores per stream. Graphs may therefore run concurrently.
        """
        if not self.cuda:
            return lambda: [action() for action in actions]
        graph = self.torch.cuda.CUDAGraph()
        self._record(graph, self.torch.cuda.Stream(), actions)
        return graph.replay

    def _record(self, graph: Any, stream: Any, actions: Sequence[Act]) -> None:
        """Record ``actions`` in PyTorch's ``graph``; they begin and end in ``stream``."""
        cuda = self.torch.cuda
        # Libraries set themselves up at the first call.
        for where in (cuda.stream(stream), cuda.graph(graph, stream=stream)):
            self.wait()
            with where:
                for action in actions:
                    action()
        self.wait()

    def streams(self, count: int) -> list[Any]:
        """Return distinct PyTorch streams; without CUDA, a list of None.

        Raises `Missing` if PyTorch has fewer streams: repeated streams would share working memory.
        """
        found = [self.torch.cuda.Stream() if self.cuda else None for _ in range(count)]
        if self.cuda and len({each.cuda_stream for each in found}) < count:
            raise Missing(f"PyTorch has fewer than {count} streams")
        return found

    def within(self, stream: Any) -> AbstractContextManager[object]:
        """Return a context in which work runs in ``stream``, one of `streams`."""
        return nullcontext() if stream is None else self.torch.cuda.stream(stream)

    def fork(self, stream: Any) -> None:
        """Let later work of ``stream`` wait for the work of the current stream."""
        if stream is not None:
            stream.wait_stream(self.torch.cuda.current_stream())

    def join(self, stream: Any) -> None:
        """Let later work of the current stream wait for the work of ``stream``."""
        if stream is not None:
            self.torch.cuda.current_stream().wait_stream(stream)

    def graph(self, act: Act, root: Any, stream: int) -> Action:
        """Return the launch of a graph of the work of ``act``, in the driver's ``stream``.

        root: PyTorch stream in which ``act`` begins and ends. Raises `Missing` if PyTorch does not
        expose its graphs.
        """
        driver = self.driver
        try:
            graph = self.torch.cuda.CUDAGraph(keep_graph=True)
        except (TypeError, RuntimeError):
            raise Missing("this PyTorch does not expose its graphs; install 2.8 or newer") from None
        self._record(graph, root, [act])
        self._kept.append(graph)  # keeps the memory between its kernels, too
        return driver.launched(graph.raw_cuda_graph(), stream)

    def gpu(self, actions: Sequence[Act], cold: bool = False) -> list[float]:
        """Return the GPU's microseconds per action of a sequence of ``actions``.

        The actions form one graph, so host calls do not count; the time between kernels does.

        cold: whether the GPU's cache is flushed first.
        """
        if not self.cuda:
            return [us / len(actions) for us in self.times(self.capture(actions))]
        torch, replay = self.torch, self.capture(actions)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        times = []
        for _ in range(self.repeats + 1):
            self._ahead(cold)
            if not cold:
                replay()
            start.record()
            replay()
            end.record()
            self.wait()
            times.append(start.elapsed_time(end) * 1e3 / len(actions))
        return times[1:]

    def _ahead(self, cold: bool) -> None:
        """Queue work on the device, so that later work waits for the device and not for the host.
        """
        if self._flusher is None or self._busy is None:
            # Several times the largest cache of a GPU.
            self._flusher = self.floats(self.sizes.of(1 << 27, 1024))
            side = max(32, min(_FILLER, self.sizes.side))
            self._busy = self.floats(side, side), self.floats(side, side)
        self.torch.mm(self._busy[0], self._busy[0], out=self._busy[1])
        if cold:
            self._flusher.zero_()

    def warm_up(self, seconds: float = 0.3) -> None:
        """Keep a GPU busy until its clocks are up."""
        start = self._clock()
        while self.cuda and self._clock() - start < seconds:
            self._ahead(cold=False)
            self.wait()

    def floats(self, *shape: int) -> Any:
        """Return small random float32 values on the device."""
        values = self.torch.empty(shape, dtype=self.torch.float32, device=self.kind)
        return values.uniform_(-0.1, 0.1)

    def zeros(self, count: int, dtype: Any = None) -> Any:
        """Return zeros on the device; the default type is int64."""
        return self.torch.zeros(count, dtype=dtype or self.torch.int64, device=self.kind)

    def indices(self, count: int, most: int) -> Any:
        """Return random int64 values below ``most`` on the device."""
        return self.torch.randint(0, most, (count,), device=self.kind)

    def on_device(self, array: Any) -> Any:
        """Return a NumPy array on the device."""
        return self.torch.from_numpy(array).to(self.kind)

    def pinned(self, count: int, dtype: Any = None) -> Any:
        """Return zeros in page-locked host memory; the default type is float32."""
        return self.torch.zeros(count, dtype=dtype or self.torch.float32, pin_memory=self.cuda)
