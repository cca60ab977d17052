"""Calibration of this machine's CPU with NumPy."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import numpy as np

from host.batching import WINDOW_BATCHES, algorithm_of
from host.calibrate.stopwatch import Stopwatch
from host.data.generator import generate
from host.devices.cpu import CpuProfile
from host.model import load_model

__all__ = ["cores", "measure_cpu"]

_MEBI = 1 << 20
_ACCESS = 64
"""Bytes of a cache line."""
_FORMED = 128
"""Samples of the mini-batches that the graph algorithm forms."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not available on this system
        return os.cpu_count() or 1


def measure_cpu(name: str, watch: Stopwatch | None = None, mebibytes: int = 256,
                side: int = 1536) -> CpuProfile:
    """Measure a `CpuProfile`.

    Streams are copies, and random accesses gather rows of 64 bytes, both with a thread per core.
    BLAS chooses its own number of threads. The graph algorithm runs on one thread, on generated
    samples of Kaggle's shape. Buffers have ``mebibytes`` MiB, which must exceed the
    caches; matrices are ``side`` wide.
    """
    watch = watch or Stopwatch()
    source = f"[M] median of {watch.repeats}: "
    with _team(cores()) as team:
        return CpuProfile(
            name, cores(), *_memory(watch, team, mebibytes), _ACCESS, _tflops(watch, side),
            watch.us(team(lambda part: None, 1)), _graph_key_ns(watch), source={
                "cores": "[M] cores available to the process",
                "memory_bandwidth_gb_s": f"{source}copies of {mebibytes} MiB",
                "random_bandwidth_gb_s":
                    f"{source}rows of 64 B of {mebibytes} MiB, less the sequential bytes",
                "access_bytes": "[C] a cache line",
                "float32_tflops": f"{source}products of matrices {side} wide",
                "operator_us": f"{source}an empty NumPy call on one thread per core",
                "graph_key_ns":
                    f"{source}mini-batches of {_FORMED} samples of Kaggle's shape on one core"})


Team = Callable[[Callable[[slice], object], int], Callable[[], object]]


@contextmanager
def _team(members: int) -> Iterator[Team]:
    """Yield a function that splits an action into one part per thread."""
    with ThreadPoolExecutor(members) as pool:

        def team(action: Callable[[slice], object], count: int) -> Callable[[], object]:
            borders = [count * member // members for member in range(members + 1)]
            parts = [slice(*pair) for pair in pairwise(borders)]
            if members == 1:
                return lambda: action(parts[0])
            return lambda: list(pool.map(action, parts))

        yield team


def _memory(watch: Stopwatch, team: Team, mebibytes: int) -> tuple[float, float]:
    """Return GB/s of sequential and of random accesses."""
    rows = mebibytes * _MEBI // _ACCESS
    table, target = (np.ones((rows, _ACCESS // 4), np.float32) for _ in range(2))
    copied = watch.us(team(lambda part: np.copyto(target[part], table[part]), rows))
    ordered = 2 * rows * _ACCESS / copied / 1e3
    taken = rows // 4
    where = np.random.default_rng(0).integers(0, rows, taken)
    us = watch.us(team(lambda part: np.take(table, where[part], 0, target[part], "clip"), taken))
    # Indices are read and rows are written sequentially, at the rate of a copy.
    rest = us - taken * (_ACCESS + where.itemsize) / (ordered * 1e3)
    return ordered, min(ordered, taken * _ACCESS / rest / 1e3) if rest > 0 else ordered


def _tflops(watch: Stopwatch, side: int) -> float:
    left, right, result = (np.ones((side, side), np.float32) for _ in range(3))
    return 2 * side**3 / watch.us(lambda: np.matmul(left, right, result)) / 1e6


def _graph_key_ns(watch: Stopwatch) -> float:
    """Return the nanoseconds per key in which a core forms the mini-batches of a window."""
    window, = generate(load_model("kaggle"), WINDOW_BATCHES * _FORMED, 1)
    form = algorithm_of("graph")
    return watch.us(lambda: list(form(window, _FORMED))) / len(window.keys) * 1e3
