"""Runs of NICs, each done once for all points that share it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from sim.evaluation.fields import Workload
from sim.evaluation.nic_run import NicRun, run_nics
from sim.evaluation.store import Store
from sim.evaluation.trace import Trace
from sim.files.identity import sources_of
from sim.job.options import RunOptions

__all__ = ["RunOf", "all_runs", "store_of_runs"]

def store_of_runs(folder: str | Path) -> Store:
    """Return the store of runs in a folder: they outlive changes of the systems around the NICs."""
    return Store(folder, sources_of(run_nics))


@dataclass(frozen=True)
class RunOf:
    """All that a run depends on but EmberNIC's sources: its key on disk.

    Members: ``options``; ``workload``, over the mini-batches of whose trace.
    """

    options: RunOptions
    workload: Workload


def all_runs(wanted: Sequence[RunOptions], trace: Trace, runs: Store | None) -> list[NicRun]:
    """Return a run over a trace for each of the options, equal ones once.

    ``runs``: keeps the runs of all processes. A run that another process is doing is left for
    later, and waited for when no other is left. Without ``runs`` this process keeps the last few.
    """
    found: dict[RunOptions, NicRun] = {}
    if runs is None:
        found = {options: _run(options, trace) for options in wanted}
    for wait in (False, True) if runs is not None else ():
        for options in wanted:
            if options in found:
                continue
            kept = runs.once(RunOf(options, trace.of),
                             partial(_plain_run, options, trace), wait)
            if kept is not None:
                found[options] = NicRun.of(kept)
    return [found[options] for options in wanted]


@lru_cache(maxsize=32)
def _run(options: RunOptions, trace: Trace) -> NicRun:
    return run_nics(options, trace.batches, trace.warmup)


def _plain_run(options: RunOptions, trace: Trace) -> dict:
    return run_nics(options, trace.batches, trace.warmup).to_json()
