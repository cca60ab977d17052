"""The GPU as the NIC sees it: lists of rows go in, their vectors come out some time later.

It also computes the bottom MLP, whose output the NIC asks for as it asks for rows.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from host.timing.clock import CYCLE_NS, cycles_of_us
from host.toml.provenance import check_source

__all__ = ["Gather", "GpuLookups", "GpuMlp", "GpuProfile", "LaunchThread"]

T = TypeVar("T")


@dataclass(frozen=True)
class GpuProfile:
    """Constants of a GPU.

    Members
    -------
    name: of the profile.
    launch_us: from a list in GPU memory to the first row read, and until a kernel computes.
    memory_bandwidth_gb_s: of the GPU's memory.
    access_bytes: bytes that a row read moves at least.
    streams: gathers under way at once.
    float32_tflops: 10^12 float32 operations that it computes in a second; default that of the
        Quadro RTX 8000, for profiles that do not say.
    kernel_us: that the shortest kernel occupies the GPU, up to the start of the next behind it.
    gather_fraction, stream_fraction: of the memory's bandwidth that kernels reach on rows anywhere
        in memory, and on bytes in order.
    gemm_fraction: of ``float32_tflops`` that matrix products reach.
    call_us: that a launch keeps the host's thread, before ``launch_us`` begins; the thread calls
        gathers one after the other. 0 for lists that no thread has to hand on.
    source: of each number, see :mod:`host.toml.provenance`.
    """

    name: str
    launch_us: float
    memory_bandwidth_gb_s: float
    access_bytes: int
    streams: int
    float32_tflops: float = 16.3
    kernel_us: float = 2.0
    gather_fraction: float = 1.0
    stream_fraction: float = 1.0
    gemm_fraction: float = 1.0
    call_us: float = 0.0
    source: dict[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for name in ("launch_us", "memory_bandwidth_gb_s", "access_bytes", "streams",
                     "float32_tflops", "kernel_us"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)!r}")
        for name in ("gather_fraction", "stream_fraction", "gemm_fraction"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} must be above 0 and at most 1, "
                                 f"not {getattr(self, name)!r}")
        if not self.call_us >= 0:
            raise ValueError(f"call_us must be at least 0, not {self.call_us!r}")
        check_source(self)

    @property
    def latency_us(self) -> float:
        """Microseconds from a list that a free thread takes up to the first row read."""
        return self.call_us + self.launch_us

    def cycles_per_row(self, row_bytes: int) -> float:
        """Return the cycles that the memory takes for a row of a gather."""
        return max(row_bytes, self.access_bytes) / (
            self.memory_bandwidth_gb_s * self.gather_fraction * CYCLE_NS)

    def cycles_of_products(self, operations: int) -> float:
        """Return the cycles of so many float32 operations of matrix products."""
        return cycles_of_us(operations / (self.float32_tflops * self.gemm_fraction * 1e6))


@dataclass(frozen=True)
class Gather(Generic[T]):
    """One launch: the lists it serves and when their vectors are there, in cycles."""

    lists: tuple[T, ...]
    start: float
    end: float


class LaunchThread:
    """The thread of a host that launches gathers, one call after the other.

    While it calls, lists wait, and go into the next launch together. Where several queues of lists
    share it, they take turns. Without a ``call_us`` in the profile it is always free.

    Parameters: ``profile``; ``at(time, action)``, which calls ``action(time)`` at that time.
    """

    def __init__(self, profile: GpuProfile, at: Callable[[float, Callable[[float], None]], None]):
        self.free = True
        self._cycles, self._at = cycles_of_us(profile.call_us), at
        self._queues: deque[Callable[[float], None]] = deque()

    def join(self, start: Callable[[float], None]) -> None:
        """Let ``start(time)`` be called when the thread is free: it launches what waits, if any."""
        self._queues.append(start)

    def take(self, time: float) -> None:
        """Begin a call at ``time``."""
        if self._cycles:
            self.free = False
            self._at(time + self._cycles, self._release)

    def _release(self, time: float) -> None:
        self.free = True
        for _ in range(len(self._queues)):
            start = self._queues[0]
            self._queues.rotate(-1)
            start(time)
            if not self.free:
                return


class GpuLookups(Generic[T]):
    """Serves request lists: all that wait when stream and thread are free go into one launch.

    The caller keeps the clock: :meth:`arrive` when a list is in GPU memory, :meth:`finish` when a
    gather ends, :meth:`start` when the ``thread`` is free again; each returns the gather that
    starts then, if any. Without a thread, calls take their time but do not wait for each other.
    """

    def __init__(self, profile: GpuProfile, row_bytes: int, thread: LaunchThread | None = None):
        if row_bytes < 1:
            raise ValueError(f"row_bytes must be at least 1, not {row_bytes!r}")
        self._thread = thread
        self._launch = cycles_of_us(profile.latency_us)
        self._cycles_per_row = profile.cycles_per_row(row_bytes)
        self._free = profile.streams
        self._waiting: deque[tuple[T, int]] = deque()
        self._memory_free = 0.0
        self.launches = 0
        self.rows = 0
        self.busy = 0.0

    @property
    def lookahead(self) -> float:
        """Cycles that pass at least between a list's arrival and the first of its vectors."""
        return self._launch

    def arrive(self, time: float, request: T, rows: int) -> Gather[T] | None:
        """Take a list of ``rows`` rows that is there at ``time``."""
        self._waiting.append((request, rows))
        return self.start(time)

    def finish(self, time: float) -> Gather[T] | None:
        """Free the stream of a gather that ends at ``time``."""
        self._free += 1
        return self.start(time)

    def start(self, time: float) -> Gather[T] | None:
        """Launch what waits, if stream and thread are free at ``time``."""
        if not self._free or not self._waiting or (self._thread and not self._thread.free):
            return None
        self._free -= 1
        if self._thread:
            self._thread.take(time)
        lists = tuple(request for request, _ in self._waiting)
        rows = sum(count for _, count in self._waiting)
        self._waiting.clear()
        # Launches overlap; the memory is one.
        start = max(time + self._launch, self._memory_free)
        self._memory_free = start + rows * self._cycles_per_row
        self.launches += 1
        self.rows += rows
        self.busy += self._memory_free - time
        return Gather(lists, time, self._memory_free)


class GpuMlp:
    """Computes an MLP for mini-batches one after the other, at the GPU's rate of matrix products.

    Kernels of later layers are launched while the first computes, so that a mini-batch waits for
    one launch. Parameters: ``operations``, of a sample: a multiplication and an addition a weight.
    """

    def __init__(self, profile: GpuProfile, operations: int):
        self._launch = cycles_of_us(profile.latency_us)
        self._cycles_per_sample = profile.cycles_of_products(operations)
        self._free = 0.0

    def run(self, time: float, samples: int) -> float:
        """Begin with a mini-batch at ``time``; return when its outputs are in GPU memory."""
        self._free = max(time + self._launch, self._free) + samples * self._cycles_per_sample
        return self._free
