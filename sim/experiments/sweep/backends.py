"""Where the points of a sweep are measured: this process, processes, or a cluster of machines."""

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["BACKENDS", "check_backend", "each"]

BACKENDS = ("loky", "dask", "ray")
"""``loky`` starts processes on this machine. The others are extras and use the cluster named by
``DASK_SCHEDULER_ADDRESS`` or ``RAY_ADDRESS``, else one on this machine."""

_PACKAGES = {"loky": "joblib", "dask": "distributed", "ray": "ray"}


def check_backend(backend: str, jobs: int | None) -> int:
    """Return the number of jobs, by default one for each processor.

    Raises ``ValueError`` for a backend that does not exist or is not installed, or for fewer jobs
    than one.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, not {backend!r}")
    if find_spec(_PACKAGES[backend]) is None:
        raise ValueError(f"backend {backend!r} needs the extra {backend!r}: "
                         f"pip install 'embernic[{backend}]'")
    jobs = os.cpu_count() or 1 if jobs is None else jobs
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, not {jobs!r}")
    return jobs


def each(function: Callable[[Any], Any], items: Iterable[Any], backend: str = "loky",
         jobs: int | None = None) -> Iterator[Any]:
    """Yield ``function(item)`` of every item, as they are finished.

    With one job of ``loky`` this process calls it. When the caller stops early, also by an
    exception, the calls under way are ended.
    """
    jobs = check_backend(backend, jobs)
    if backend == "loky" and jobs == 1:
        yield from map(function, items)
        return
    # Slow to load, and one process needs none of it.
    import joblib

    with ExitStack() as stack:
        _connect(backend, jobs, stack)
        work = joblib.delayed(_quietly)
        # In batches of one: a point takes seconds, and is kept as soon as it is finished.
        outcomes = joblib.Parallel(n_jobs=jobs, batch_size=1, pre_dispatch="2*n_jobs",
                                   return_as="generator_unordered")(
            work(function, item, os.getpid()) for item in items)
        try:
            yield from outcomes
        finally:
            outcomes.close()


def _quietly(function: Callable[[Any], Any], item: Any, parent: int) -> Any:
    """Call ``function``; another process ignores Ctrl-C, which a terminal sends to all of them, and
    leaves it to the one that started it."""
    if os.getpid() != parent and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return function(item)


def _connect(backend: str, jobs: int, stack: ExitStack) -> None:
    """Let joblib use ``backend`` until ``stack`` is closed."""
    import joblib

    if backend == "dask":
        distributed = import_module("distributed")
        if import_module("dask").config.get("scheduler-address", None):
            stack.enter_context(distributed.Client())
        else:
            cluster = stack.enter_context(distributed.LocalCluster(
                n_workers=jobs, threads_per_worker=1, dashboard_address=None))
            stack.enter_context(distributed.Client(cluster))
    elif backend == "ray":
        import_module("ray.util.joblib").register_ray()
    stack.enter_context(joblib.parallel_config(backend=backend, n_jobs=jobs))
