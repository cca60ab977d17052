"""The samples of a point, as the mini-batches that its systems are given."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from host.batching import Batcher, MiniBatch, algorithm_of
from host.model import Model
from host.samples import Samples
from sim.options import RunOptions
from sim.source import choose_model, sample_chunks

from .point import Point

__all__ = ["Trace", "arrivals_of", "trace_of"]


@dataclass(frozen=True, eq=False)
class Trace:
    """Mini-batches, those that warm up and those that are measured. Equal to itself alone.

    Members
    -------
    model: DLRM of the data set. source: where the samples come from, in words.
    batches: all mini-batches in their order. warmup: how many of them come before the measured.
    mini_batch, window: samples of a mini-batch, and of the window that it is formed from.
    notes: what is not as the point asks, in words.
    """

    model: Model
    source: str
    batches: tuple[MiniBatch, ...]
    warmup: int
    mini_batch: int
    window: int
    notes: tuple[str, ...]

    @property
    def measured(self) -> tuple[MiniBatch, ...]:
        """The mini-batches that are measured."""
        return self.batches[self.warmup:]

    def ready(self, batch: MiniBatch) -> int:
        """Return the number of the sample with whose arrival ``batch`` can be formed."""
        last = int(batch.numbers.max())
        total = sum(len(other.samples) for other in self.batches)
        return min(total, (last // self.window + 1) * self.window) - 1


def trace_of(point: Point) -> Trace:
    """Return the trace of a point; that of two points which differ in their systems is the same.

    A file that is too short lowers the samples of a mini-batch, which ``notes`` says; samples are
    not repeated. ``ValueError`` where not even one is left.
    """
    return _trace(point.dataset, point.data, point.format, point.seed, point.batching,
                  point.window, point.samples, point.warmup, point.measured)


@lru_cache(maxsize=8)
def _trace(dataset: str, data: tuple[str, ...], kind: str | None, seed: int, batching: str,
           window: int | None, size: int, warmup: int, measured: int) -> Trace:
    count = (warmup + measured) * size
    options = RunOptions(config=dataset, data=data or None, format=kind, samples=count, seed=seed,
                         mini_batch=size)
    model, found = choose_model(options)
    chunks = list(_first(sample_chunks(options, model, found), count))
    have, notes = sum(map(len, chunks)), []
    if have < count:
        size = have // (warmup + measured)
        if not size:
            raise ValueError(f"data must hold at least {warmup + measured} samples, one for each "
                             f"mini-batch, not {have}")
        notes.append(f"the file has {have:,} samples: mini-batches of {size}")
        window = None
        chunks = list(_first(iter(chunks), (warmup + measured) * size))
    batcher = Batcher(algorithm_of(batching), size, window)
    batches = tuple(batcher.form(chunks))
    waits = size if batching == "file" else window or 16 * size
    source = ", ".join(data) if data else f"generator, shape of {dataset}, seed {seed}"
    return Trace(model, source, batches, len(batches) * warmup // (warmup + measured), size, waits,
                 tuple(notes))


def _first(chunks: Iterator[Samples], count: int) -> Iterator[Samples]:
    """Yield the first ``count`` samples."""
    for chunk in chunks:
        if len(chunk) >= count:
            if count:
                yield chunk.slice(0, count)
            return
        count -= len(chunk)
        yield chunk


def arrivals_of(trace: Trace, per_us: float, seed: int) -> np.ndarray:
    """Return when each sample of the trace arrives: a Poisson process of ``per_us`` a microsecond.

    float64 ``[samples]``, microseconds.
    """
    count = sum(len(batch.samples) for batch in trace.batches)
    return np.cumsum(np.random.default_rng(seed).exponential(1 / per_us, count))
