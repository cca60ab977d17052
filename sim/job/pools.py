"""Nodes at which the bags of each table are pooled: the option ``pool`` of a run."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from host.dlrm.formats import in_lanes
from host.errors import InputError
from host.model import Model, are_slices, table_label, table_names
from host.placement.pooling import (
    ForeignBags,
    Wire,
    bag_bound,
    choose_pools,
    most_keys,
    pool_obstacles,
)
from host.placement.shard import ShardPlan
from host.samples import Samples
from host.toml.schema import read_toml
from host.wire.bags import NARROW_ROWS
from rtl.config import LANES, NicConfig
from rtl.formats import RECORDS_PER_BEAT, TAGS_PER_BEAT, PoolPlace, words_of
from sim.job.columns import check_slices, tables_named
from sim.job.settings import Runtime
from sim.job.workload import Workload

__all__ = ["check_bags", "check_weights", "found_repeats", "pool_slots", "remote_cache_of",
           "segments_needed", "segments_of_samples", "slots_with", "wire_of", "with_pools"]


_RUNTIME = Runtime()


@dataclass(frozen=True)
class _PoolFile:
    """A pool file. Member: ``owner``, names or numbers of the tables that pool at their owner."""

    owner: tuple[str | int, ...]


def with_pools(plan: ShardPlan, model: Model, workload: Workload, config: NicConfig,
               runtime: Runtime = _RUNTIME, measured: Iterable[Samples] = (),
               gradients: bool = False) -> tuple[ShardPlan, list[str]]:
    """Return ``plan`` with the workload's ``pool`` or ``owner_tables``, and a note for each table
    that ``owner`` leaves at the requester, or on the choice of ``auto``.

    runtime: settings of the NIC, for ``auto``.
    measured: mini-batches for ``auto``, see :meth:`sim.job.inputs.SampleSource.measured`; read only
        then.
    gradients: whether ``auto`` counts the gradients of training, which GPUs sum at the owner.

    :class:`host.errors.InputError` if a file names an unknown table, or a table that cannot pool at
    its owner. ``ValueError`` for a column slice that would pool at the requester.
    """
    longest = _longest(model, workload)
    pooled, notes = _pooled(plan, model, workload, config, runtime, measured, gradients, longest)
    if workload.owner_tables is None:
        check_slices(pooled, model, pool_obstacles(plan, config, longest))
    return pooled, notes


def _pooled(plan: ShardPlan, model: Model, workload: Workload, config: NicConfig,
            runtime: Runtime, measured: Iterable[Samples], gradients: bool,
            longest: list[int]) -> tuple[ShardPlan, list[str]]:
    """Return :func:`with_pools` before its check. longest: keys of the longest bag of each table.
    """
    if workload.owner_tables is not None:
        return plan.with_owner_tables(workload.owner_tables), []
    if workload.pool == "requester":
        return plan, []
    if workload.pool == "auto":
        foreign = ForeignBags(plan, measured, found_repeats(workload, config, runtime),
                              config if gradients else None)
        longest = np.maximum(longest, foreign.longest).tolist()
        return _chosen(foreign, in_lanes(model, workload.wire),
                       pool_obstacles(plan, config, longest), config, runtime)
    reasons = pool_obstacles(plan, config, longest)
    if workload.pool == "owner":
        chosen = [reason is None for reason in reasons]
        notes = [f"table {table_label(model, table)} pools at the requester: {reason}"
                 for table, reason in enumerate(reasons) if reason]
    else:
        wanted = _of_file(workload, model)
        chosen, notes = [table in wanted for table in range(model.tables)], []
        for table in sorted(wanted):
            if reasons[table]:
                raise InputError(str(workload.pool), 0, 0,
                                 f"owner: table {table_label(model, table)} must pool at the "
                                 f"requester: {reasons[table]}")
    return plan.with_pools([PoolPlace.OWNER if owner else PoolPlace.REQUESTER
                            for owner in chosen]), notes


def found_repeats(workload: Workload, config: NicConfig, runtime: Runtime) -> str:
    """Return the repeated bags that need no bytes, one of `host.batching.repeats.REPEATS`. NICs
    that compare bags look up the rows of a repeat in their remote caches, if tables pool at the
    requester."""
    if workload.repeats == "nic" and remote_cache_of(config, runtime)[0]:
        return "neighbours"
    return workload.host_repeats


def _longest(model: Model, workload: Workload) -> list[int]:
    """Return the keys of the longest bag of each table; 1 for files, whose bags are not known."""
    known = model.bags and workload.data is None
    return [most for _, most in model.bags] if known else [1] * model.tables


def _chosen(foreign: ForeignBags, model: Model, obstacles: list[str | None], config: NicConfig,
            runtime: Runtime) -> tuple[ShardPlan, list[str]]:
    """Return the plan with the fewest bytes on the network, and a note on the choice. model: in
    lanes, as NICs see it."""
    wire, cache = wire_of(config, model.width, foreign.plan.beats), remote_cache_of(config, runtime)
    # NICs cannot pool weighted bags, and pad slices that they look up.
    needed = foreign.plan.weighted & (runtime.deliver != "unique") | are_slices(model)
    pools = choose_pools(foreign, wire, obstacles, *cache, needed=needed)
    requester = [PoolPlace.REQUESTER] * model.tables
    bytes_now, bytes_before = (
        int(foreign.bytes_of(wire, places, *cache).chosen(places).sum())
        for places in (pools, requester))
    return foreign.plan.with_pools(pools), [
        f"pool auto: {sum(pools):,} of {model.tables:,} tables pool at the owner, which sends "
        f"{bytes_now:,} bytes over the network instead of {bytes_before:,} (full packets of "
        f"{foreign.samples:,} samples{', with gradients' * (foreign.partials is not None)}, "
        f"caches empty at first)"]


def wire_of(config: NicConfig, width: int, bag_beats: Iterable[int] = ()) -> Wire:
    """Return the vectors of ``width`` lanes and the packets of a NIC. bag_beats: see `Wire`."""
    beats = config.net_payload_beats
    return Wire(4 * width, min(TAGS_PER_BEAT, max(1, (beats - 1) * LANES // width)),
                RECORDS_PER_BEAT * beats, tuple(map(int, bag_beats)))


def remote_cache_of(config: NicConfig, runtime: Runtime) -> tuple[int, int]:
    """Return the sets and ways of a NIC's remote cache; 0 sets if it is off."""
    sets = runtime.remote_cache_sets or config.remote_cache_sets
    return sets if runtime.remote_cache else 0, config.remote_cache_ways


def _of_file(workload: Workload, model: Model) -> set[int]:
    """Return the numbers of the tables in a pool file."""
    path = Path(str(workload.pool))
    names = () if workload.model is None else table_names(workload.model)
    found: set[int] = set()
    most = max(model.originals)
    for entry in read_toml(path, _PoolFile).owner:
        if not isinstance(entry, int):
            try:
                found |= tables_named(entry, names, "owner")
            except ValueError as error:
                raise InputError(path, 0, 0, str(error)) from None
            continue
        if not 0 <= entry <= most:
            raise InputError(path, 0, 0, f"owner must name tables 0 to {most}, not {entry}")
        found.add(entry)
    return {number for number, table in enumerate(model.originals) if table in found}


def pool_slots(samples: Samples, plan: ShardPlan) -> np.ndarray:
    """Return the slots of each sample: a slot per bag of an owner-pooled table, and otherwise per
    key or empty bag; int64 ``[n]``."""
    return slots_with(samples.bag_lengths, plan.owner_pooled > 0)


def slots_with(lengths: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Return the slots of samples with bags of ``lengths [n, tables]`` as :func:`pool_slots` does;
    ``owner``: whether each table pools at its owner, bool ``[tables]``."""
    return np.where(owner, 1, np.maximum(lengths, 1)).sum(axis=1, dtype=np.int64)


def check_bags(samples: Samples, numbers: np.ndarray, plan: ShardPlan, config: NicConfig,
               model: Model | None = None) -> None:
    """Raise ``ValueError`` for a bag that exceeds a packet, and for a sample whose bags exceed the
    NIC.

    numbers: number of each sample in the input. model: tables, which may be column slices.
    """
    pooled = plan.owner_pooled
    for table in np.flatnonzero(pooled).tolist():
        keys = int(samples.bag_lengths[:, table].max(initial=0))
        most = most_keys(config, plan.tables[table])
        if keys > most:
            label = table if model is None else table_label(model, table)
            raise ValueError(f"table {label} pools at the owner: its bags must have at most {most} "
                             f"keys {bag_bound(config)}, not {keys}: use a larger "
                             f"{bag_bound(config).split()[1]}, or pool it at the requester")
    segments = segments_of_samples(samples, plan)
    if len(segments) and int(segments.max()) > config.bag_segments:
        raise ValueError(f"bag_segments must be at least {int(segments.max())} for the bags of "
                         f"sample {numbers[int(segments.argmax())]}, not {config.bag_segments!r}: "
                         f"use a larger bag_segments, or pool fewer tables at the owner")


def check_weights(plan: ShardPlan, deliver: str) -> None:
    """Raise ``ValueError`` for a weighted table whose bags NICs would pool, because they do not
    multiply.

    deliver: delivery of the NICs; with ``unique``, GPUs pool.
    """
    left = np.flatnonzero(plan.weighted & (plan.owner_pooled == 0))
    if len(left) and deliver != "unique":
        raise ValueError(f"table {left[0]} has weights, so it must pool at its owner with deliver "
                         f"{deliver}: use pool owner, or deliver unique")


def segments_needed(model: Model, workload: Workload, plan: ShardPlan) -> int:
    """Return the most segments of a generated sample; for files, of bags of a key."""
    return int(_segments(np.array(_longest(model, workload)), plan))


def segments_of_samples(samples: Samples, plan: ShardPlan) -> np.ndarray:
    """Return the most segments of each sample's owner-pooled bags: int64 ``[n]``."""
    return _segments(samples.bag_lengths.astype(np.int64), plan)


def _segments(lengths: np.ndarray, plan: ShardPlan) -> np.ndarray:
    """Return the most segments of the owner-pooled bags of samples: int64 ``[...]``.

    lengths: keys of each bag, int64 ``[..., tables]``.
    """
    pooled = plan.owner_pooled
    words = 1 + words_of(lengths, (pooled > NARROW_ROWS).astype(np.int64), plan.weighted)
    # A bag may begin at the last word of a beat.
    return np.where((pooled > 0) & (lengths > 0), (words + 14) // 8, 0).sum(axis=-1)
