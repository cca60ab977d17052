"""The NICs of a point: their times for each measured mini-batch, and counts."""

from dataclasses import dataclass, replace
from operator import mul
from typing import Any

import numpy as np

from host.batching.repeats import repeated_bags
from host.dlrm.formats import padding_notes
from host.model import padded
from host.once import once
from host.placement.shard import ShardPlan
from host.samples import share_sizes
from host.systems import UPDATES, Devices, NicTimes
from rtl.config import NicConfig, preset
from sim.evaluation.busy import busy_trace, deeper, first_depth, of_length
from sim.evaluation.fields import Fields
from sim.evaluation.nic_options import Nics, cache_rows, options_of, serving, sizes_for
from sim.evaluation.nic_run import NicRun, all_runs
from sim.evaluation.store import Store
from sim.evaluation.trace import Trace, nic_plan_of, plan_of
from sim.evaluation.workloads import Updates, updates_of_trace
from sim.job.settings import apply_settings
from sim.node.dense_vectors import bottom_operations

__all__ = ["NicPart", "busy_times", "late_us", "nic_part", "updates_of"]


@dataclass(frozen=True)
class NicPart:
    """Results of a point's NICs.

    Members
    -------
    times: times of each measured mini-batch.
    local_cache, remote_cache: rows, hits and hit rates over the measured half; None without the
        cache.
    saved_lookups: remote-cache hits in the measured half.
    traffic: traffic per mini-batch.
    delivered: counts per mini-batch of all nodes with unique delivery, else None; see
        :func:`sim.evaluation.measure.measure`.
    notes: notes in words.
    by_mini_batch: hits and accesses of the local caches in each mini-batch; None without the cache.
    """

    times: list[NicTimes]
    local_cache: dict | None
    remote_cache: dict | None
    saved_lookups: int | None
    traffic: dict[str, dict[str, float]]
    notes: list[str]
    delivered: dict[str, float] | None = None
    by_mini_batch: list[tuple[int, int]] | None = None

    def times_as_many(self, by: float) -> "NicPart":
        """Return the NICs for mini-batches of ``by`` times as many samples.

        Counts and intervals grow in proportion once a share exceeds the tables of a NIC, and
        latencies as of :meth:`host.systems.NicTimes.times_as_many`. Keys that repeat between the
        smaller mini-batches count each time, which favours systems without NICs.
        """
        return replace(self, traffic=_multiplied(self.traffic, by),
                       saved_lookups=_multiplied(self.saved_lookups, by),
                       delivered=_multiplied(self.delivered, by),
                       times=[each.times_as_many(by) for each in self.times])


def _multiplied(value: Any, by: float) -> Any:
    """Return numbers, in dictionaries at any depth, multiplied by ``by``."""
    if isinstance(value, dict):
        return {name: _multiplied(each, by) for name, each in value.items()}
    return None if value is None else value * by


def nic_part(point: Fields, nics: Nics, trace: Trace, devices: Devices,
             runs: Store | None = None, enough: float = 0.0) -> NicPart:
    """Run the NICs of a point, or read their runs from ``runs``, which stores new runs.

    The latency of a mini-batch comes from a run with one in flight. The interval comes, in
    inference, from runs of :func:`sim.evaluation.busy.busy_trace` with more and more in flight,
    until NICs are no faster, or as fast as ``enough`` microseconds: the fewest that suit NICs are
    in flight there, and the doorbell of a later one follows the answers of an earlier one. The
    system applies its own depth to the rest. The warm-up is not counted. A thread of the driver
    launches each gather on the GPU, one call at a time, which adds to the gather's latency.

    With the interaction on the NIC, the phase ``irregular`` is the time by which a run with
    interaction exceeds a run with pooled vectors, or the bottom MLP if that is longer. The
    remaining time depends on whether dense vectors or looked-up vectors arrive last. A run in which
    dense vectors arrive late (:func:`late_us`) measures the first case.

    A NIC that serves several GPUs simulates the share of all of them; see
    :meth:`host.timing.gpu.GpuProfile.together`. Its PCIe link carries the queries, rows and
    results of all of them.
    """
    interacts = _interacts(point, nics)
    count, cluster = len(trace.measured), point.cluster
    share = int(np.ceil(trace.mini_batch / cluster.all_nics))
    rows, notes = cache_rows(point, nics, trace)
    sizes = sizes_for(point, nics, trace, interacts)
    notes += padding_notes(trace.model, nics.wire)
    if sizes:
        notes.append(f"NICs beyond preset {point.workload.preset}: {', '.join(sizes)}")
    if point.system.sampled is not None:
        notes.append(f"NICs run {trace.mini_batch:,} samples of a mini-batch; intervals and bytes "
                     f"are multiplied by {point.workload.samples / trace.mini_batch:g}")
    if point.system.persistent_gather:
        notes.append("a persistent kernel gathers on the GPU")
    gpu, _ = serving(point, nics, devices, trace.model)
    if cluster.all_nics > NicConfig.most_nodes:
        notes.append(f"{cluster.all_nics} NICs are above the {NicConfig.most_nodes} of the RTL")

    late = replace(gpu, gemm_fraction=1.0,
                   float32_tflops=share * _operations(trace) / (late_us(share) * 1e6))
    wanted = [(gpu, False), (gpu, interacts), *([(late, True)] if interacts else [])]
    alone, with_interaction, *behind = all_runs(
        [options_of(point, nics, trace, devices, of, rows, each, 1) for of, each in wanted], trace,
        runs)
    first = trace.warmup
    bottom = gpu.latency_us + share * _operations(trace) / (
        gpu.float32_tflops * gpu.gemm_fraction * 1e6)
    ready = gpu.latency_us + late_us(share)
    times = []
    for number, busy in enumerate(_busy(point, nics, trace, devices, runs, enough), first):
        phases = alone.records[number].phases(alone.one_way)
        if interacts:
            more = with_interaction.records[number].us - max(sum(phases.values()), bottom)
            phases["irregular"] = max(0.0, more)
        last = behind[0].records[number].us - ready if behind else 0.0
        times.append(replace(busy, phases=phases, interaction_us=max(0.0, last)))
    local = _cache(alone, "local_cache", rows, "dedupe")
    remote = _cache(alone, "remote_cache", rows) if cluster.all_nics > 1 else None
    lookups = None if cluster.all_nics == 1 else remote["hits"] if remote else 0
    traffic = {kind: {unit: value / alone.mini_batches for unit, value in total.items()}
               for kind, total in alone.traffic.items()}
    part = NicPart(times, local, remote, lookups, traffic, notes, _delivered(alone, count),
                   local and [(record.hits or 0, record.accesses or 0)
                              for record in alone.records[first:]])
    return part if point.system.sampled is None else part.times_as_many(
        point.workload.samples / trace.mini_batch)


def busy_times(point: Fields, nics: Nics, trace: Trace, devices: Devices,
               runs: Store | None = None, enough: float = 0.0) -> list[NicTimes]:
    """Return the times of :func:`nic_part` for each measured mini-batch without latencies, which
    the run with several mini-batches in flight does not contain."""
    times = _busy(point, nics, trace, devices, runs, enough)
    by = point.workload.samples / trace.mini_batch
    return times if point.system.sampled is None else [each.times_as_many(by) for each in times]


def _busy(point: Fields, nics: Nics, trace: Trace, devices: Devices,
          runs: Store | None, enough: float) -> list[NicTimes]:
    """Return the times of NICs with several mini-batches in flight, without latencies."""
    interacts, cluster = _interacts(point, nics), point.cluster
    share = int(np.ceil(trace.mini_batch / cluster.all_nics))
    gpu, called = serving(point, nics, devices, trace.model)
    rows, depth, found = cache_rows(point, nics, trace)[0], first_depth(trace, share), []
    if point.system.sampled is not None:
        enough *= trace.mini_batch / point.workload.samples

    def run(of: Trace, many: int) -> NicRun:
        return all_runs([options_of(point, nics, of, devices, gpu, rows, interacts, many, trace)],
                        of, runs)[0]

    def alone_us() -> float:
        few = of_length(trace, 1, 2)
        return float(np.mean([record.us for record in run(few, 1).records[few.warmup:]]))

    while True:
        long, many = (trace, 1) if point.workload.training else busy_trace(trace, depth)
        found.append(((each := run(long, many)).interval_us(long.warmup), depth, each))
        if many < depth or not deeper(trace, depth, [us for us, _, _ in found], alone_us, enough):
            break
        depth *= 2
    interval, _, busy = min(found, key=lambda each: each[:2])
    gathers, gathered, delivered = (max(counts) / busy.mini_batches for counts in (
        busy.launches, busy.gathered, busy.delivered))
    pooled = [max(counts) / len(busy.records) for counts in (
        busy.pooled_launches, busy.pooled_rows, busy.pooled_bags)]
    values = max(map(mul, busy.pooled_rows, _pooled_widths(
        trace, nic_plan_of(point, trace)).tolist())) / len(busy.records)
    sent = busy.traffic["total"]["bytes"] / busy.mini_batches / cluster.all_nics
    # Each GPU of a NIC has an equal part of its lists and results.
    gathered, delivered = gathered / cluster.gpus_per_nic, delivered / cluster.gpus_per_nic
    # One thread makes the calls, which limits their number.
    launches = gathers + pooled[0] if called else 0.0
    if gpu.apart_us:
        launches = min(launches, interval / gpu.apart_us) * cluster.gpus_per_nic
    return [NicTimes({}, interval, launches, gathers, gathered, *pooled, *own, sent_bytes=sent,
                     delivered_bytes=delivered, pooled_values=values, own_values=own_values)
            for *own, own_values in _own_counts(point, trace, interacts)]


def _interacts(point: Fields, nics: Nics) -> bool:
    """Return whether NICs interact."""
    return not point.workload.training and ("sc" in nics.parts or nics.on_card)


def late_us(share: int) -> float:
    """Return the time of a late bottom MLP for ``share`` samples, in microseconds.

    It is longer than the lookups and shorter than the watchdog's timeout.
    """
    return 100 + 0.5 * share


def _operations(trace: Trace) -> int:
    """Return the operations of a sample's bottom MLP."""
    return bottom_operations(trace.model)


def _own_counts(point: Fields, trace: Trace,
                interacts: bool) -> list[tuple[float, ...]]:
    """Return, for each measured mini-batch, the rows, bags and weights that the busiest node pools
    of its own samples, the weights of others, and the values of these rows; NICs that
    ``interacts`` take all bags."""
    owner, nodes = point.system.owner_tables, point.cluster.endpoints
    if not owner:
        return [(0.0,) * 5] * len(trace.measured)
    plan, found, widths = plan_of(point, trace), [], _widths(trace)
    held = _pooling_at(plan)
    for batch in trace.measured:
        lengths, ends = batch.samples.bag_lengths, np.cumsum(share_sizes(len(batch.samples), nodes))
        if point.system.repeats != "send":
            lengths = lengths * ~repeated_bags(batch.samples, nodes)
        own = [share[:, of] for share, of in zip(np.split(lengths, ends[:-1]), held)]
        weights = np.array([each[:, plan.weighted[of]].sum() for each, of in zip(own, held)])
        others = (lengths.sum(axis=0) * plan.weighted * held).sum(axis=1) - weights
        mine = (0, 0, 0) if interacts else (
            max(each.sum() for each in own), max(map(np.count_nonzero, own)), weights.max())
        values = 0 if interacts else max((each * widths[of]).sum() for each, of in zip(own, held))
        found.append((*map(float, mine), float(others.max()), float(values)))
    return found


def _pooling_at(plan: ShardPlan) -> np.ndarray:
    """Return which tables pool at each node as their owner: bool ``[nodes, tables]``."""
    held = np.array([[table.owner == node for table in plan.tables] for node in range(plan.nodes)])
    return held & (plan.owner_pooled > 0)


def _widths(trace: Trace) -> np.ndarray:
    """Return the values of a row of each table, as NICs pad it: int64 ``[tables]``."""
    return np.array([padded(each) for each in trace.model.table_dimensions])


@once
def _pooled_widths(trace: Trace, plan: ShardPlan) -> np.ndarray:
    """Return the mean values of a row in bags that each node of ``plan`` pools: ``[nodes]``."""
    keys = np.sum([batch.samples.bag_lengths.sum(axis=0, dtype=np.int64)
                   for batch in trace.measured], axis=0) * _pooling_at(plan)
    return (keys * _widths(trace)).sum(axis=1) / np.maximum(keys.sum(axis=1), 1)


def updates_of(point: Fields, nics: Nics, trace: Trace, nic: NicPart) -> Updates:
    """Return the rows that NICs update in the measured steps, and how many of them miss the cache.
    """
    config, _ = apply_settings(preset(point.workload.preset), list(nics.settings_of(point)))
    return updates_of_trace(trace, nic_plan_of(point, trace),
                            nic.local_cache["rows"] if nic.local_cache else 0,
                            config.local_cache_ways, config.policy,
                            point.system.update == UPDATES[0])


def _delivered(run: NicRun, count: int) -> dict[str, float] | None:
    """Return the unique-delivery counts of a mini-batch; ``count`` mini-batches were measured."""
    slots, vectors, early = (run.counts[f"delivery.{name}"] / count
                             for name in ("slots", "unique", "retired_early"))
    return {"slots": slots, "vectors": vectors, "retired_early": early} if slots else None


def _cache(run: NicRun, cache: str, rows: dict[str, int | None],
           served: str | None = None) -> dict | None:
    """Return a cache's counts over the measured half.

    ``served``: block in front of the cache; its requests are all lookups, duplicates included.
    """
    if rows[cache] == 0:
        return None
    hits, accesses, misses = (run.counts[f"{cache}.{name}"]
                              for name in ("hits", "accesses", "misses"))
    requests = run.counts[f"{served}.requests"] if served else accesses
    return {"rows": rows[cache] or run.rows[cache], "hits": hits, "accesses": accesses,
            "hit_rate": (requests - misses) / requests if requests else None,
            "hit_rate_unique": hits / accesses if served and accesses else None}
