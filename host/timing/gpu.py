"""Timing model of the GPU as the NIC sees it: row lists in, vectors out after some time.

It also computes the bottom MLP, whose output the NIC requests like rows.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from host.timing.clock import CYCLE_NS, cycles_of_us
from host.toml.provenance import check_source

__all__ = ["Gather", "GpuLookups", "GpuMlp", "GpuProfile", "LaunchThread", "MemoryClock"]

T = TypeVar("T")


@dataclass(frozen=True)
class GpuProfile:
    """Constants of a GPU.

    Members
    -------
    name: name of the profile.
    launch_us: time from a list in GPU memory to the first row read, and until a kernel computes.
    memory_bandwidth_gb_s: bandwidth of GPU memory.
    access_bytes: minimum bytes that a row read moves.
    streams: concurrent gathers.
    float32_tflops: 10^12 float32 operations per second; the default is the Quadro RTX 8000's.
    kernel_us: minimum time from the start of a kernel to the start of a dependent kernel.
    gather_fraction, stream_fraction: fractions of the memory bandwidth that kernels reach on random
        rows, and on sequential bytes.
    gemm_fraction: fraction of ``float32_tflops`` that matrix products reach.
    call_us: time that a launch occupies the host thread, before ``launch_us`` begins; the thread
        launches gathers in sequence. 0 if no thread is involved.
    pace_us: least time from a launch of the thread to its next one; lists that arrive meanwhile
        share the next launch.
    multiprocessors: number of multiprocessors; the default is the Quadro RTX 8000's.
    block_bytes: bytes per multiprocessor that a kernel without products moves.
    poll_us: time from a list in GPU memory to the first row read by a resident kernel.
    word_us: time from a word in GPU memory until work behind a waiting graph node begins.
    resident_multiprocessors: multiprocessors that a resident kernel occupies permanently.
    bar_gib: GiB of GPU memory that other devices can access.
    flush_reads: reads of its own last write that a device needs before it may signal completion; 0
        if PCIe writes become visible in order.
    read_us: latency of a read from GPU memory whose address depends on an earlier read.
    beside_fraction: fraction of a multiprocessor's rate that kernels side by side reach.
    beside_us: time of the whole GPU that a kernel takes from kernels beside it, in addition to its
        work.
    source: source of each number, see :mod:`host.toml.provenance`.
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
    pace_us: float = 0.0
    multiprocessors: int = 72
    block_bytes: int = 16384
    poll_us: float = 2.0
    word_us: float = 2.0
    resident_multiprocessors: int = 4
    flush_reads: int = 1
    bar_gib: float = 0.25
    read_us: float = 0.0
    beside_fraction: float = 1.0
    beside_us: float = 0.0
    source: dict[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for name in ("launch_us", "memory_bandwidth_gb_s", "access_bytes", "streams",
                     "float32_tflops", "multiprocessors", "block_bytes", "poll_us",
                     "word_us", "resident_multiprocessors", "bar_gib"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)!r}")
        for name in ("gather_fraction", "stream_fraction", "gemm_fraction", "beside_fraction"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} must be above 0 and at most 1, "
                                 f"not {getattr(self, name)!r}")
        for name in ("kernel_us", "read_us", "call_us", "pace_us", "flush_reads", "beside_us"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, not {getattr(self, name)!r}")
        check_source(self)

    @property
    def latency_us(self) -> float:
        """Microseconds from a list's arrival at a free host thread to the first row read."""
        return self.call_us + self.launch_us

    @property
    def apart_us(self) -> float:
        """Least microseconds from a launch of the host thread to its next one."""
        return max(self.call_us, self.pace_us)

    def together(self, gpus: int) -> "GpuProfile":
        """Return the profile of ``gpus`` of these GPUs that a NIC serves.

        A request list is a gather on each GPU at the same time: the gathers share the rows, and the
        host launches each. The GPUs share the samples of the NIC.
        """
        return replace(self, memory_bandwidth_gb_s=gpus * self.memory_bandwidth_gb_s,
                       float32_tflops=gpus * self.float32_tflops, call_us=gpus * self.call_us)

    def cycles_per_row(self, row_bytes: int) -> float:
        """Return the cycles of memory bandwidth that a gathered row takes."""
        return max(row_bytes, self.access_bytes) / (
            self.memory_bandwidth_gb_s * self.gather_fraction * CYCLE_NS)

    @property
    def stream_bytes_per_cycle(self) -> float:
        """Sequential bytes that GPU memory moves in a cycle."""
        return self.memory_bandwidth_gb_s * self.stream_fraction * CYCLE_NS

    def cycles_of_bags(self, rows: int, bags: int, row_bytes: int, weights: int = 0) -> float:
        """Return the cycles of memory bandwidth of ``bags`` that pool ``rows`` rows: the rows, an
        index of 4 bytes for each, 4 bytes for each of ``weights``, and a vector for each bag."""
        return rows * self.cycles_per_row(row_bytes) + (
            4 * (rows + weights) + bags * row_bytes) / self.stream_bytes_per_cycle

    def cycles_of_products(self, operations: int) -> float:
        """Return the cycles of ``operations`` float32 operations of matrix products."""
        return cycles_of_us(operations / (self.float32_tflops * self.gemm_fraction * 1e6))


@dataclass(frozen=True)
class Gather(Generic[T]):
    """A launch: its lists, the cycle of the first row read, and the cycle at which vectors are
    ready.
    """

    lists: tuple[T, ...]
    start: float
    first: float
    end: float


class LaunchThread:
    """The host thread that launches gathers in sequence.

    Lists that arrive before the thread may launch again wait and join the next launch. Several
    queues of lists that share the thread take turns. With ``apart_us`` 0, the thread is always
    free.

    Parameters: ``profile``; ``at(time, action)``, which calls ``action(time)`` at that time.
    """

    def __init__(self, profile: GpuProfile, at: Callable[[float, Callable[[float], None]], None]):
        self.free = True
        self._cycles, self._at = cycles_of_us(profile.apart_us), at
        self._queues: deque[Callable[[float], None]] = deque()

    def join(self, start: Callable[[float], None]) -> None:
        """Call ``start(time)``, which launches waiting lists, when the thread is free."""
        self._queues.append(start)

    def take(self, time: float) -> None:
        """Start a call at ``time``."""
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


@dataclass
class MemoryClock:
    """GPU memory that several kinds of gathers share. Member: ``free``, the cycle from which on its
    bandwidth is free."""

    free: float = 0.0


class GpuLookups(Generic[T]):
    """Serves request lists: all lists that wait when stream and thread are free share a launch.

    The caller keeps the clock. It calls :meth:`arrive` when a list is in GPU memory, :meth:`finish`
    when a gather ends, and :meth:`start` when the ``thread`` is free again. Each returns the gather
    that starts then, if any. Without a thread, calls take time but do not wait for each other.
    ``memory``: shared with other gathers; None for memory of its own.
    """

    def __init__(self, profile: GpuProfile, row_bytes: int, thread: LaunchThread | None = None,
                 memory: MemoryClock | None = None):
        if row_bytes < 1:
            raise ValueError(f"row_bytes must be at least 1, not {row_bytes!r}")
        self._thread = thread
        self._launch = cycles_of_us(profile.latency_us)
        self._kernel = cycles_of_us(profile.kernel_us)
        self._cycles_per_row = profile.cycles_per_row(row_bytes)
        self._profile, self._row_bytes = profile, row_bytes
        self._free = profile.streams
        self._waiting: deque[tuple[T, tuple[int, int, int]]] = deque()
        self._memory = memory or MemoryClock()
        self.launches = 0
        self.rows = 0
        self.busy = 0.0

    @property
    def lookahead(self) -> float:
        """Minimum cycles between a list's arrival and its first vector."""
        return self._launch

    def arrive(self, time: float, request: T, rows: int, bags: int = 0,
               weights: int = 0) -> Gather[T] | None:
        """Accept a list of ``rows`` rows that arrives at ``time``; the GPU pools them in ``bags``
        bags, with a weight for each of ``weights`` rows, or returns each row if ``bags`` is 0."""
        self._waiting.append((request, (rows, bags, weights)))
        return self.start(time)

    def finish(self, time: float) -> Gather[T] | None:
        """Free the stream of a gather that ends at ``time``."""
        self._free += 1
        return self.start(time)

    def start(self, time: float) -> Gather[T] | None:
        """Launch the waiting lists if stream and thread are free at ``time``."""
        if not self._free or not self._waiting or (self._thread and not self._thread.free):
            return None
        self._free -= 1
        if self._thread:
            self._thread.take(time)
        lists = tuple(request for request, _ in self._waiting)
        rows, bags, weights = map(sum, zip(*(counts for _, counts in self._waiting)))
        self._waiting.clear()
        # Launches overlap, but share the memory; a kernel takes at least kernel_us.
        begun = time + self._launch
        first = max(begun, self._memory.free)
        self._memory.free = first + (
            self._profile.cycles_of_bags(rows, bags, self._row_bytes, weights) if bags else
            rows * self._cycles_per_row)
        end = max(begun + self._kernel, self._memory.free)
        self.launches += 1
        self.rows += rows
        self.busy += end - time
        return Gather(lists, time, first, end)


class GpuMlp:
    """Computes an MLP for consecutive mini-batches, at the GPU's matrix product rate.

    Later layers are launched while the first one computes, so a mini-batch pays a single launch.

    Parameters: ``operations`` per sample: a multiplication and an addition per weight.
    """

    def __init__(self, profile: GpuProfile, operations: int):
        self._launch = cycles_of_us(profile.latency_us)
        self._cycles_per_sample = profile.cycles_of_products(operations)
        self._free = 0.0

    def run(self, time: float, samples: int) -> float:
        """Start a mini-batch at ``time``; return when its outputs are in GPU memory."""
        self._free = max(time + self._launch, self._free) + samples * self._cycles_per_sample
        return self._free
