"""Nodes at which the bags of each table are pooled: the option ``pool`` of a run."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from host.errors import InputError
from host.model import Model, table_names
from host.placement.pooling import bag_bound, most_keys, pool_obstacles
from host.placement.shard import ShardPlan
from host.samples import Samples
from host.toml.schema import read_toml
from host.wire.bags import NARROW_ROWS
from rtl.config import NicConfig
from rtl.formats import PoolPlace, words_of
from sim.job.workload import Workload

__all__ = ["check_bags", "pool_slots", "with_pools"]


@dataclass(frozen=True)
class _PoolFile:
    """A pool file. Member: ``owner``, names or numbers of the tables that pool at their owner."""

    owner: tuple[str | int, ...]


def with_pools(plan: ShardPlan, model: Model, workload: Workload,
               config: NicConfig) -> tuple[ShardPlan, list[str]]:
    """Return ``plan`` with the workload's ``pool``, and a note for each table that ``owner`` leaves
    at the requester.

    :class:`host.errors.InputError` if a file names an unknown table, or a table that cannot pool at
    its owner.
    """
    if workload.pool == "requester":
        return plan, []
    known = model.bags and workload.data is None
    reasons = pool_obstacles(plan, config, [most for _, most in model.bags] if known
                             else [1] * model.tables)
    if workload.pool == "owner":
        chosen = [reason is None for reason in reasons]
        notes = [f"table {table} pools at the requester: {reason}"
                 for table, reason in enumerate(reasons) if reason]
    else:
        wanted = _of_file(workload, model)
        chosen, notes = [table in wanted for table in range(model.tables)], []
        for table in sorted(wanted):
            if reasons[table]:
                raise InputError(str(workload.pool), 0, 0,
                                 f"owner: table {table} must pool at the requester: "
                                 f"{reasons[table]}")
    return plan.with_pools([PoolPlace.OWNER if owner else PoolPlace.REQUESTER
                            for owner in chosen]), notes


def _of_file(workload: Workload, model: Model) -> set[int]:
    """Return the numbers of the tables in a pool file."""
    path = Path(str(workload.pool))
    names = () if workload.model is None else table_names(workload.model)
    found: set[int] = set()
    for entry in read_toml(path, _PoolFile).owner:
        if isinstance(entry, int):
            if not 0 <= entry < model.tables:
                raise InputError(path, 0, 0, f"owner must name tables 0 to {model.tables - 1}, "
                                             f"not {entry}")
            found.add(entry)
            continue
        numbers = {number for number, name in enumerate(names) if name == entry}
        if not numbers:
            known = ", ".join(dict.fromkeys(filter(None, names)))
            raise InputError(path, 0, 0, f"owner must name tables of the model ({known}), "
                                         f"not {entry!r}" if known else
                             f"owner must have numbers of tables, not {entry!r}: the model has no "
                             f"names of tables")
        found |= numbers
    return found


def pool_slots(samples: Samples, plan: ShardPlan) -> np.ndarray:
    """Return the slots of each sample: a slot per bag of an owner-pooled table, and otherwise per
    key or empty bag; int64 ``[n]``."""
    each = np.maximum(samples.bag_lengths, 1)
    return np.where(plan.owner_pooled > 0, 1, each).sum(axis=1, dtype=np.int64)


def check_bags(samples: Samples, numbers: np.ndarray, plan: ShardPlan, config: NicConfig) -> None:
    """Raise ``ValueError`` for a bag that exceeds a packet, and for a sample whose bags exceed the
    NIC.

    numbers: number of each sample in the input.
    """
    pooled = plan.owner_pooled
    for table in np.flatnonzero(pooled).tolist():
        keys = int(samples.bag_lengths[:, table].max(initial=0))
        most = most_keys(config, int(pooled[table]))
        if keys > most:
            raise ValueError(f"table {table} pools at the owner: its bags must have at most {most} "
                             f"keys {bag_bound(config)}, not {keys}: use a larger "
                             f"{bag_bound(config).split()[1]}, or pool it at the requester")
    lengths = samples.bag_lengths.astype(np.int64)
    words = 1 + words_of(lengths, (pooled > NARROW_ROWS).astype(np.int64), 0)
    # A bag may begin at the last word of a beat.
    segments = np.where((pooled > 0) & (lengths > 0), (words + 14) // 8, 0).sum(axis=1)
    if len(segments) and int(segments.max()) > config.bag_segments:
        raise ValueError(f"bag_segments must be at least {int(segments.max())} for the bags of "
                         f"sample {numbers[int(segments.argmax())]}, not {config.bag_segments!r}: "
                         f"use a larger bag_segments, or pool fewer tables at the owner")
