"""Serving of a row of the results page."""

from collections.abc import Mapping
from pathlib import Path

from sim.evaluation.point import Task
from sim.evaluation.sweep import Progress
from sim.experiments.results.cases import COMPARED, Case
from sim.experiments.results.serving import BOUNDS_US
from sim.serving.chosen import Chosen
from sim.serving.serve import searches_of, serve
from sim.serving.setting import Setting, candidates_of

__all__ = ["searches_of_case", "serve_case", "setting_of"]

_REQUESTS = 2000
"""Measured requests of a run: 2 of them take longer than the p99.9."""

_SMALLER = 4
"""A system also chooses a mini-batch of fewer samples, by this factor."""


def setting_of(case: Case) -> Setting:
    """Return the setting of a row: its model, samples and cluster, and two mini-batches that each
    system chooses from."""
    point = case.systems[0].point
    cluster, of = point.cluster, point.workload
    return Setting(
        dataset=of.dataset, data=of.data, format=of.format, seed=of.seed, fidelity=case.fidelity,
        sizes=(max(1, case.mini_batch // _SMALLER), case.mini_batch), requests=_REQUESTS,
        candidates=candidates_of(of.dataset, of.data),
        gpu_memory_bytes=case.systems[0].memory, **{
            name: getattr(cluster, name) for name in (
                "nodes", "software", "gpu", "link", "network", "gpus", "nics", "inside", "rdma")})


def searches_of_case(case: Case) -> list[Task]:
    """Return the searches of a served row, which a page measures beside its rows."""
    return [*searches_of(setting_of(case), COMPARED)]


def serve_case(case: Case, folder: str | Path, jobs: int | None = None,
               progress: Progress | None = None, runs: str | Path | None = None,
               searched: Mapping[Task, Mapping] | None = None) -> dict:
    """Serve a row with each system, and return the result of :func:`sim.serving.serve.serve`.

    folder: keeps finished parts. jobs, progress, runs: as of `serve`. searched: results of
    :func:`searches_of_case`.
    """
    return serve(setting_of(case), COMPARED, None, BOUNDS_US, folder, jobs, progress, runs,
                 {search: metrics for search, metrics in (searched or {}).items()
                  if isinstance(search, Chosen)})
