"""Where the tables of a workload lie: its placement, with the lookups measured that it deals by."""

import numpy as np

from host.data.datasets import check_files
from host.model import Model
from host.placement.shard import ShardPlan
from sim.job.inputs import GENERATED, sample_chunks
from sim.job.workload import MEASURED, Workload

__all__ = ["lookups_of", "plan_of"]

def plan_of(workload: Workload, model: Model, kind: str | None,
            placement: str | None = None) -> ShardPlan:
    """Return the plan of a workload's tables, by its own placement or the one that is given.

    ``kind``: format of the files, None for the generator. With placement ``lookups`` the input is
    opened a first time here, unless the workload brings the lookups.
    """
    placement = placement or workload.placement
    lookups = workload.lookups
    if placement == "lookups" and lookups is None:
        lookups = lookups_of(workload, model, kind)
    return ShardPlan.deal(model, workload.nodes, placement, lookups).with_copies(
        workload.copied_rows)


def lookups_of(workload: Workload, model: Model, kind: str | None) -> tuple[int, ...]:
    """Return the lookups of each table over the first `MEASURED` samples of the input, or all.

    They count from the start, whatever the ``first_sample``, so that a run that continues another
    finds every row where it was. `InputError` for a pipe, which can be read only once.
    """
    if workload.data is not None:
        check_files(workload.data, "for placement lookups, which counts lookups before the run")
    found, left = np.zeros(model.tables, np.int64), min(MEASURED, workload.samples or (
        GENERATED if workload.data is None else MEASURED))
    for chunk in sample_chunks(workload, model, kind):
        part = chunk.slice(0, left)
        found += part.bag_lengths.sum(axis=0, dtype=np.int64)
        left -= len(part)
        if not left:
            break
    return tuple(found.tolist())
