"""Trace of a point: its mini-batches, the placement of its tables, and the part that NICs see."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np

from host.batching import Batcher, MiniBatch, algorithm_of
from host.data.contents import check_contents, contents
from host.model import Model
from host.once import once
from host.placement.deal import given_owners
from host.placement.shard import ShardPlan
from host.samples import Samples, first_samples
from host.systems import Tally
from rtl.formats import DescriptorKind
from sim.evaluation.fields import Fields, Workload, model_of
from sim.job.inputs import SampleSource
from sim.job.workload import Workload as JobWorkload

__all__ = ["ENDLESS", "FewSamplesError", "Trace", "arrivals_of", "copied_all", "first_of",
           "model_without", "nic_plan_of", "placement_of", "plan_of", "tally_of", "trace_key",
           "trace_of", "without_small"]

ENDLESS = 1 << 40
"""Samples of a source of which the first are used, see :func:`first_of`."""

_KEPT_KEYS = 120_000_000
"""Keys of the traces that a process keeps, about: 12 bytes each."""

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
    found: results of functions of the trace, see :func:`host.once.once`.
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
    found: dict[Hashable, Any] = field(init=False, default_factory=dict, repr=False)

    @property
    def measured(self) -> tuple[MiniBatch, ...]:
        """The mini-batches that are measured."""
        return self.batches[self.warmup:]

    def ready(self, batch: MiniBatch) -> int:
        """Return the number of the sample whose arrival completes the window of ``batch``."""
        last = int(batch.numbers.max())
        total = sum(len(other.samples) for other in self.batches)
        return min(total, (last // self.window + 1) * self.window) - 1


@once
def tally_of(trace: Trace, number: int, nodes: int) -> Tally:
    """Return the counts of measured mini-batch ``number``, split over ``nodes``, by table."""
    return Tally(trace.measured[number].samples, nodes)


_TRACES: dict[tuple[Workload, tuple[str, ...]], Trace] = {}
"""Traces that were used last, the last at the end."""


def trace_of(workload: Workload) -> Trace:
    """Return the trace of a workload; points that differ only in their systems share it.

    If files are too short, there are fewer mini-batches, which ``notes`` states; samples are not
    repeated. ``FewSamplesError`` for fewer than 2 mini-batches.
    """
    key = trace_key(workload), contents(workload.data)
    found = _TRACES.pop(key, None)
    while found is None and _TRACES and _keys(_TRACES) + _keys_of(key[0]) > _KEPT_KEYS:
        _TRACES.pop(next(iter(_TRACES)), None)
    _TRACES[key] = found = found or _trace(*key)
    return found


def _keys(traces: dict[tuple[Workload, tuple[str, ...]], Trace]) -> int:
    """Return the keys of traces."""
    return sum(len(batch.samples.rows) for trace in [*traces.values()] for batch in trace.batches)


def _keys_of(of: Workload) -> float:
    """Return the keys of a workload's trace, about."""
    return of.samples * (of.warmup + of.measured) * model_of(of.dataset).keys


def trace_key(workload: Workload) -> Workload:
    """Return the workload that identifies a trace: equal for all workloads of the same samples."""
    return replace(workload, workload=Workload.workload, mini_batch=workload.samples)


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
    batches = tuple(batcher.form(chunks.pop(0) for _ in range(len(chunks))))  # frees memory
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


def arrivals_of(trace: Trace, per_us: float, seed: int) -> np.ndarray:
    """Return the arrival time of each sample: a Poisson process with ``per_us`` samples per
    microsecond.

    float64 ``[samples]``, microseconds.
    """
    count = sum(len(batch.samples) for batch in trace.batches)
    return np.cumsum(np.random.default_rng(seed).exponential(1 / per_us, count))


def plan_of(point: Fields, trace: Trace, least_rows: int | None = None) -> ShardPlan:
    """Return the placement plan of a point's tables, the same for every system.

    Placement ``lookups`` counts the lookups of the whole trace, warm-up included.
    ``least_rows``: tables of at most this many rows are left out.
    """
    cluster = point.cluster
    plan = _plan(trace, cluster.endpoints, placement_name(point), cluster.gpus,
                 least_rows).with_copies(point.system.copied_rows)
    owner = point.system.owner_tables
    plan = replace(plan, own_at_gpu=point.system.own_bags == "gpu")
    return plan.with_owner_tables(owner) if owner else plan


def nic_plan_of(point: Fields, trace: Trace) -> ShardPlan:
    """Return the plan that a point's NICs see: a NIC owns the rows of all GPUs that it serves."""
    return plan_of(point, trace).joined(point.cluster.gpus_per_nic)


def placement_name(point: Fields) -> str:
    """Return the placement that a point gives; ``ValueError`` if it leaves the placement open."""
    if point.cluster.placement is None:
        raise ValueError("placement must be given where it is not searched, not None")
    return point.cluster.placement


def placement_of(point: Fields, trace: Trace) -> str:
    """Return the placement with which a run of NICs has the plan of a point."""
    plan = plan_of(point, trace)
    if any(table.kind == DescriptorKind.ROW for table in plan.tables):
        return "row"
    return ",".join(str(table.owner) for table in plan.tables)


@once
def _plan(trace: Trace, nodes: int, placement: str, gpus: int,
          least_rows: int | None = None) -> ShardPlan:
    """Return the plan of a trace; ``least_rows``: tables of at most this many rows are left out."""
    kept, lookups = _larger(trace, least_rows), None
    every = model_of(trace.of.dataset).rows
    if (given := given_owners(placement)) and len(given) == len(every):
        left = max(-1 if rows is None else rows for rows in (trace.least_rows, least_rows))
        placement = ",".join(str(node) for node, rows in zip(given, every)
                             if rows > left)
    if placement == "lookups":
        lookups = np.sum([batch.samples.bag_lengths.sum(axis=0, dtype=np.int64)
                          for batch in trace.batches], axis=0)[kept].tolist()
    return ShardPlan.deal(model_without(trace, least_rows), nodes, placement, lookups, gpus,
                          len(every))


def model_without(trace: Trace, rows: int | None) -> Model:
    """Return the model of a trace without the tables of at most ``rows`` rows."""
    kept = _larger(trace, rows)
    return trace.model if kept.all() else trace.model.with_tables(
        np.flatnonzero(kept).tolist(), f"{trace.model.name}, tables of more than {rows} rows")


def _larger(trace: Trace, rows: int | None) -> np.ndarray:
    """Return which tables have more than ``rows`` rows, all for None: bool ``[tables]``."""
    return np.array(trace.model.rows) > (-1 if rows is None else rows)


def copied_all(trace: Trace, rows: int) -> bool:
    """Return whether every table has at most ``rows`` rows, so that copies would leave no table."""
    return max(trace.model.rows) <= rows


@once
def without_small(trace: Trace, rows: int) -> Trace:
    """Return a trace without the tables of at most ``rows`` rows; at least one table must remain.
    """
    kept = _larger(trace, rows)
    if kept.all():
        return trace
    number = np.cumsum(kept) - 1

    def less(samples: Samples) -> Samples:
        held = kept[samples.tables]
        return Samples(samples.dense, samples.labels,
                       np.ascontiguousarray(samples.bag_lengths[:, kept]),
                       number[samples.tables[held]].astype(np.int32), samples.rows[held],
                       None if samples.weights is None else samples.weights[held])

    return replace(trace, changed=True, model=model_without(trace, rows), least_rows=rows,
                   batches=tuple(replace(batch, samples=less(batch.samples))
                                           for batch in trace.batches))
