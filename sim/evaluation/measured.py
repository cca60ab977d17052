"""Measure the points of an evaluation in a folder that keeps them."""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from sim.evaluation.measure import measure
from sim.evaluation.nic_run import store_of_runs
from sim.evaluation.point import Point, Task, effort
from sim.evaluation.store import Results, Store
from sim.evaluation.sweep import Progress, sweep
from sim.files.identity import sources_of

__all__ = ["measured"]


def measured(points: Iterable[Point | Task], folder: Path, order: Callable[[list], list],
             how: Callable[[Any], dict] | None = None, backend: str = "loky",
             jobs: int | None = None, progress: Progress | None = None) -> Results:
    """Measure every point that ``folder`` does not contain.

    Parameters
    ----------
    folder: keeps finished points in ``points`` and NIC runs in ``runs``.
    how: measures a point; :func:`sim.evaluation.measure.measure` by default.
    order, backend, jobs, progress: see :func:`sim.evaluation.sweep.sweep`.
    """
    runs = store_of_runs((folder / "runs").absolute())
    return sweep(points, how or partial(measure, runs=runs),
                 Store(folder / "points", sources_of(measure)), backend, jobs, progress, order,
                 effort)
