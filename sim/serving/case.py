"""Serving of a row of the results page."""

from pathlib import Path

from sim.evaluation.sweep import Progress
from sim.experiments.results.cases import COMPARED, Case
from sim.experiments.results.serving import BOUNDS_US
from sim.serving.serve import serve
from sim.serving.setting import Setting, candidates_of

__all__ = ["serve_case", "setting_of"]

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


def serve_case(case: Case, folder: str | Path, jobs: int | None = None,
               progress: Progress | None = None) -> dict:
    """Serve a row with each system, and return the result of :func:`sim.serving.serve.serve`.

    folder: keeps finished parts. jobs, progress: as of `serve`.
    """
    return serve(setting_of(case), COMPARED, None, BOUNDS_US, folder, jobs, progress)
