"""Trace of a point: its mini-batches, the placement of its tables, and the part that NICs see."""

from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock

import numpy as np

from host.batching import Batcher, MiniBatch, algorithm_of
from host.data.contents import check_contents, contents
from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import Samples, first_samples
from rtl.formats import DescriptorKind
from sim.evaluation.fields import Fields, Workload
from sim.job.inputs import SampleSource
from sim.job.workload import Workload as JobWorkload

__all__ = ["ENDLESS", "FewSamplesError", "Trace", "arrivals_of", "busy_trace", "copied_all",
           "first_of", "nic_plan_of", "placement_of", "plan_of", "trace_key", "trace_of",
           "without_small"]

SATURATED = 16
"""Mini-batches in flight that keep NICs busy. A short trace uses half the number of measured
mini-batches, because the interval is measured between the two halves."""

_SETTLED, _SETTLED_KEYS = 8, 400_000
"""Mini-batches of a busy run's warm-up per mini-batch in flight, and their keys, at most. All nodes
begin at once, and NICs keep this rhythm for up to about 90 mini-batches of 128 samples."""

_LEAST_BUSY = 4
"""Least mini-batches of a busy run that are measured. With one in flight, an interval is the time
of a mini-batch alone, 3.5 % too long on two_towers with 64 samples."""

ENDLESS = 1 << 40
"""Samples of a source of which the first are used, see :func:`first_of`."""

_READING = Lock()  # Dask may measure points in threads.


class FewSamplesError(ValueError):
    """Raised if files hold fewer than 2 mini-batches."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Mini-batches of the warm-up and of the measurement. Compared by identity.

    Members
    -------
    of: workload of the trace.
    model: DLRM of the data set. source: source of the samples, in words.
    batches: all mini-batches, in order. warmup: number of mini-batches before the measured ones.
    mini_batch, window: samples of a mini-batch, and of the window that it is formed from.
    notes: differences from the point's request, in words.
    changed: whether ``model`` differs from the data set's, such as for NICs that serve part of a
        trace. least_rows: tables of at most this many rows are left out; None without a table left
        out. only: whether no further samples can be made or read.
    """

    of: Workload
    model: Model
    source: str
    batches: tuple[MiniBatch, ...]
    warmup: int
    mini_batch: int
    window: int
    notes: tuple[str, ...]
    changed: bool = False
    least_rows: int | None = None
    only: bool = False

    @property
    def measured(self) -> tuple[MiniBatch, ...]:
        """The mini-batches that are measured."""
        return self.batches[self.warmup:]

    def ready(self, batch: MiniBatch) -> int:
        """Return the number of the sample whose arrival completes the window of ``batch``."""
        last = int(batch.numbers.max())
        total = sum(len(other.samples) for other in self.batches)
        return min(total, (last // self.window + 1) * self.window) - 1


def trace_of(workload: Workload) -> Trace:
    """Return the trace of a workload; points that differ only in their systems share it.

    If files are too short, there are fewer mini-batches, which ``notes`` states; samples are not
    repeated. ``FewSamplesError`` for fewer than 2 mini-batches.
    """
    return _trace(trace_key(workload), contents(workload.data))


def trace_key(workload: Workload) -> Workload:
    """Return the workload that identifies a trace: equal for all workloads of the same samples."""
    return replace(workload, workload=Workload.workload, mini_batch=workload.samples)


@lru_cache(maxsize=8)
def _trace(of: Workload, _: tuple[str, ...]) -> Trace:
    data, size, window, warmup, measured = (
        of.data, of.samples, of.window, of.warmup, of.measured)
    count = (warmup + measured) * size
    source = SampleSource.of(JobWorkload(
        config=of.preset, model=None if of.of_paper else of.dataset, data=data or None,
        format=of.format, samples=ENDLESS, seed=of.seed))
    chunks = first_of(source, count)
    have, notes = sum(map(len, chunks)), []
    if have < count:
        found = have // size
        if found < 2:
            raise FewSamplesError(f"data must hold at least 2 mini-batches of {size:,} samples, "
                                  f"not {have:,} samples")
        notes.append(f"the files hold {have:,} samples: {found} instead of {warmup + measured} "
                     f"mini-batches, half of them measured")
        warmup, measured = found // 2, found - found // 2
        window = None
        chunks = list(first_samples(chunks, found * size))
    batcher = Batcher(algorithm_of(of.batching), size, window)
    batches = tuple(batcher.form(chunks))
    waits = size if of.batching == "file" else window or 16 * size
    named = ", ".join(data) if data else f"generator, shape of {of.name}, seed {of.seed}"
    first = len(batches) * warmup // (warmup + measured)
    return Trace(of, source.model, named, batches, first, size, waits, tuple(notes))


def first_of(source: SampleSource, count: int) -> list[Samples]:
    """Return the first ``count`` samples of a source, in chunks; fewer if its files have fewer.

    Samples that an equal source has given are not read or generated again, see
    :mod:`host.data.kept`.
    """
    data = source.workload.data or ()
    read = contents(data)
    with _READING:
        try:
            chunks = list(first_samples(_opened(source, read).chunks(again=True), count))
        except BaseException:
            _opened.cache_clear()  # the stream has ended before its last sample
            raise
    check_contents(data, read)
    return chunks


@lru_cache(maxsize=4)
def _opened(source: SampleSource, read: tuple[str, ...]) -> SampleSource:
    """Return the first source that was equal to ``source``."""
    return source


def busy_trace(trace: Trace) -> tuple[Trace, int]:
    """Return the trace of a run that measures the interval of NICs, and its mini-batches in flight.

    It is a longer trace of the same source: the warm-up lasts until the nodes' common start has no
    effect, and as many mini-batches as are in flight follow the measured ones, because NICs that
    drain are faster. Files may have fewer. A trace that is too short for several mini-batches in
    flight is returned itself, with 1.
    """
    measured = len(trace.measured) if trace.only else max(_LEAST_BUSY, len(trace.measured))
    in_flight = min(SATURATED, measured // 2)
    if in_flight < 2:
        return trace, 1
    found = trace
    if not trace.only:
        keys = sum(len(batch.samples.keys) for batch in trace.batches) // len(trace.batches)
        settled = min(_SETTLED * in_flight, _SETTLED_KEYS // max(1, keys))
        found = trace_of(replace(trace.of, warmup=max(trace.warmup, settled),
                                 measured=measured + in_flight))
        if trace.least_rows is not None:
            found = without_small(found, trace.least_rows)
    in_flight = min(in_flight, len(found.measured) // 3)
    return (found, in_flight) if in_flight > 1 else (trace, 1)


def arrivals_of(trace: Trace, per_us: float, seed: int) -> np.ndarray:
    """Return the arrival time of each sample: a Poisson process with ``per_us`` samples per
    microsecond.

    float64 ``[samples]``, microseconds.
    """
    count = sum(len(batch.samples) for batch in trace.batches)
    return np.cumsum(np.random.default_rng(seed).exponential(1 / per_us, count))


def plan_of(point: Fields, trace: Trace) -> ShardPlan:
    """Return the placement plan of a point's tables, the same for every system.

    Placement ``lookups`` counts the lookups of the whole trace, warm-up included.
    """
    cluster = point.cluster
    return _plan(trace, cluster.endpoints, cluster.placement, cluster.gpus).with_copies(
        point.system.copied_rows)


def nic_plan_of(point: Fields, trace: Trace) -> ShardPlan:
    """Return the plan that a point's NICs see: a NIC owns the rows of all GPUs that it serves."""
    return plan_of(point, trace).joined(point.cluster.gpus_per_nic)


def placement_of(point: Fields, trace: Trace) -> tuple[str, tuple[int, ...] | None]:
    """Return the placement and the lookups with which a run of NICs has the plan of a point."""
    plan = plan_of(point, trace)
    if point.cluster.gpus == 1 or any(t.kind == DescriptorKind.ROW for t in plan.tables):
        return point.cluster.placement, plan.rule.lookups
    return ",".join(str(table.owner) for table in plan.tables), None


@lru_cache(maxsize=8)
def _plan(trace: Trace, nodes: int, placement: str, gpus: int) -> ShardPlan:
    lookups = None
    if placement == "lookups":
        lookups = np.sum([batch.samples.bag_lengths.sum(axis=0, dtype=np.int64)
                          for batch in trace.batches], axis=0).tolist()
    return ShardPlan.deal(trace.model, nodes, placement, lookups, gpus)


def copied_all(trace: Trace, rows: int) -> bool:
    """Return whether every table has at most ``rows`` rows, so that copies would leave no table."""
    return max(trace.model.rows) <= rows


@lru_cache(maxsize=16)
def without_small(trace: Trace, rows: int) -> Trace:
    """Return a trace without the tables of at most ``rows`` rows; at least one table must remain.
    """
    kept = np.array([each > rows for each in trace.model.rows])
    if kept.all():
        return trace
    number = np.cumsum(kept) - 1

    def less(samples: Samples) -> Samples:
        held = kept[samples.tables]
        return Samples(samples.dense, samples.labels,
                       np.ascontiguousarray(samples.bag_lengths[:, kept]),
                       number[samples.tables[held]].astype(np.int32), samples.rows[held])

    model = trace.model.with_tables(np.flatnonzero(kept).tolist(), f"{trace.model.name}, tables of "
                                    f"more than {rows} rows")
    return replace(trace, changed=True, model=model, least_rows=rows, batches=tuple(
            replace(batch, samples=less(batch.samples)) for batch in trace.batches))
