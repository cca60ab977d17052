"""What a measurement may ask of a machine: operators of PyTorch, timed, and kernels of its own.

A measurement is a function of a `Device` that yields readings. It runs on a GPU, on PyTorch's CPU
device (for tests: nothing is asynchronous there, and what needs CUDA is missing), and on the tests'
own devices.
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
"""Width of the product that keeps the GPU busy while the host gets ahead of it."""


class Sizes:
    """Sizes of what needs much memory on a GPU; ``scale`` shrinks them.

    Members: ``values`` of element-wise operators; ``table_values``, of the table that rows are
    gathered from; ``rows`` gathered at once where the rate counts; ``side`` of matrices;
    ``copied`` bytes.
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
    """A device of PyTorch. No gradients are tracked, products are float32.

    Parameters
    ----------
    torch: the module. kind: ``cuda`` or ``cpu``. repeats: measurements of each time.
    sizes: see `Sizes`. clock: returns seconds. driver: in place of the one that CUDA has, or why
        there is none.
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
        """The CUDA driver. Raises `Missing` where there is none, or not all that it needs."""
        if self._driver is None:
            try:
                if not self.cuda:
                    raise Missing("it needs a CUDA device")
                self.floats(1)  # PyTorch makes the context that the driver then uses
                self.wait()
                major, minor = self.torch.cuda.get_device_capability()
                self._driver = Driver(10 * major + minor)
            except Missing as missing:
                self._driver = missing
        if isinstance(self._driver, Missing):
            raise self._driver
        return self._driver

    def kernel(self, source: str, name: str, grid: int, block: int, *arguments: Any) -> Act:
        """Return what launches a kernel of the project's own where PyTorch would, see `Driver`.

        Raises `Missing` where there is no CUDA driver, or not all that it needs.
        """
        return self.driver.inside(self._stream, source, name, grid, block, *arguments)

    def _stream(self) -> int:
        return self.torch.cuda.current_stream().cuda_stream if self.cuda else 0

    def wait(self) -> None:
        """Wait for all that the device was given."""
        if self.cuda:
            self.torch.cuda.synchronize()

    def times(self, action: Act, rounds: int = 1) -> list[float]:
        """Return the microseconds of ``action``, with one wait after each series of ``rounds``."""
        return self._waited.all_us(action, rounds)

    def queued(self, action: Act, rounds: int = ROUNDS) -> list[float]:
        """Return the host's microseconds of ``action``, without waiting for what it starts."""

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
        """Return the host's microseconds of one ``action`` of an idle device, without waiting."""
        action()
        times = []
        for _ in range(4 * self.repeats):
            self.wait()
            times.append(self._free.us_once(action))
        self.wait()
        return times

    def capture(self, actions: Sequence[Act]) -> Act:
        """Return what does all ``actions``: on a GPU, the launch of one graph.

        Graphs may run side by side: each is captured in a stream of its own, since libraries have
        working memory for each stream, with semaphores in it.
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
        """Return streams of PyTorch, each another; without CUDA, None in place of each.

        Raises `Missing` for more than PyTorch has: those that come twice share working memory.
        """
        found = [self.torch.cuda.Stream() if self.cuda else None for _ in range(count)]
        if self.cuda and len({each.cuda_stream for each in found}) < count:
            raise Missing(f"PyTorch has no {count} streams")
        return found

    def within(self, stream: Any) -> AbstractContextManager[object]:
        """Return what has the body of ``with`` done in ``stream``, one of `streams`."""
        return nullcontext() if stream is None else self.torch.cuda.stream(stream)

    def fork(self, stream: Any) -> None:
        """Let what ``stream`` is given come after all that the current one was given."""
        if stream is not None:
            stream.wait_stream(self.torch.cuda.current_stream())

    def join(self, stream: Any) -> None:
        """Let what the current stream is given come after all that ``stream`` was given."""
        if stream is not None:
            self.torch.cuda.current_stream().wait_stream(stream)

    def graph(self, act: Act, root: Any, stream: int) -> Action:
        """Return the launch, in the driver's ``stream``, of one graph of all that ``act`` does.

        ``root``: the stream of PyTorch in which ``act`` begins and ends. Raises `Missing` where
        PyTorch does not hand out its graphs.
        """
        driver = self.driver
        try:
            graph = self.torch.cuda.CUDAGraph(keep_graph=True)
        except (TypeError, RuntimeError):
            raise Missing("this PyTorch does not hand out its graphs; 2.8 does") from None
        self._record(graph, root, [act])
        self._kept.append(graph)  # and with it the memory of what is between its kernels
        return driver.launched(graph.raw_cuda_graph(), stream)

    def gpu(self, actions: Sequence[Act], cold: bool = False) -> list[float]:
        """Return the GPU's microseconds of an action, of ``actions`` one after the other.

        They are one graph, so that the host's calls don't count; the time from the start of one
        kernel to the start of the next does. ``cold``: nothing of them is in the GPU's cache.
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
        """Give the device some work, so that what follows waits for it and not for the host."""
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
        """Return float32 of small random values on the device."""
        values = self.torch.empty(shape, dtype=self.torch.float32, device=self.kind)
        return values.uniform_(-0.1, 0.1)

    def zeros(self, count: int, dtype: Any = None) -> Any:
        """Return zeros on the device, int64 unless ``dtype`` says otherwise."""
        return self.torch.zeros(count, dtype=dtype or self.torch.int64, device=self.kind)

    def indices(self, count: int, most: int) -> Any:
        """Return int64 on the device, random below ``most``."""
        return self.torch.randint(0, most, (count,), device=self.kind)

    def on_device(self, array: Any) -> Any:
        """Return a NumPy array on the device."""
        return self.torch.from_numpy(array).to(self.kind)

    def pinned(self, count: int, dtype: Any = None) -> Any:
        """Return zeros in page-locked host memory, float32 unless ``dtype`` says otherwise."""
        return self.torch.zeros(count, dtype=dtype or self.torch.float32, pin_memory=self.cuda)
