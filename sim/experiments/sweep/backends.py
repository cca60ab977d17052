"""Where the points of a sweep are measured: this process, processes, or a cluster of machines."""

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["BACKENDS", "check_backend", "each"]

BACKENDS = ("loky", "dask")
"""``loky`` starts processes on this machine. ``dask`` is an extra: it uses the cluster whose
scheduler ``DASK_SCHEDULER_ADDRESS`` names, else one that it starts on this machine."""

_WATCH_SECONDS = 0.5
"""How often a worker looks whether the process that started it is there."""

_PACKAGES = {"loky": "joblib", "dask": "distributed"}


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
         jobs: int | None = None) -> Iterator[tuple[Any, Any]]:
    """Yield every item with ``function(item)``, as they are finished.

    With one job of ``loky`` this process calls it. A cluster that was there before has jobs of its
    own; an item whose worker is lost goes to another one, and one that loses several, also when it
    is the only one, is yielded with the exception that says so. When the caller stops early, also
    by an exception, the calls under way are ended. ``ChildProcessError`` where a process of
    ``loky`` is killed.
    """
    jobs = check_backend(backend, jobs)
    if backend == "loky" and jobs == 1:
        yield from ((item, function(item)) for item in items)
        return
    with closing((_in_processes if backend == "loky" else _on_cluster)(
            function, items, jobs)) as outcomes:
        yield from outcomes


def _in_processes(function: Callable[[Any], Any], items: Iterable[Any],
                  jobs: int) -> Iterator[tuple[Any, Any]]:
    # Slow to load, and one process needs none of it.
    import joblib
    from joblib.externals.loky.process_executor import BrokenProcessPool

    _start_tracker()
    work = joblib.delayed(_called)
    # In batches of one: a point takes seconds, and is kept as soon as it is finished.
    outcomes: Any = joblib.Parallel(
        n_jobs=jobs, batch_size=1, pre_dispatch="2*n_jobs", backend="loky",
        return_as="generator_unordered", initializer=_begin_worker, initargs=(os.getpid(),))(
            work(function, item) for item in items)
    with warnings.catch_warnings(), closing(outcomes):
        # loky replaces a worker that has grown by what it keeps, such as traces; no item is lost.
        warnings.filterwarnings("ignore", "A worker stopped", UserWarning)
        # Of a sweep that a signal ends.
        warnings.filterwarnings("ignore", ".* tasks which were still being processed", UserWarning)
        try:
            yield from outcomes
        except BrokenProcessPool:
            raise ChildProcessError(
                "a process that measured was killed, as a system does that is out of memory: what "
                "is finished is kept; the same command, with fewer --jobs perhaps, goes on"
            ) from None


def _start_tracker() -> None:
    """Start the process that tidies up for loky, deaf to the end of a terminal, as it is to Ctrl-C:
    it ends with this process."""
    from joblib.externals.loky.backend.resource_tracker import ensure_running

    if not hasattr(signal, "pthread_sigmask"):
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
    try:
        ensure_running()  # what is blocked here is blocked there
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _called(function: Callable[[Any], Any], item: Any) -> tuple[Any, Any]:
    return item, function(item)


def _begin_worker(parent: int) -> None:
    """Let a worker end with the process that started it, and not before.

    A terminal sends its signals to all processes of a command; the one that started the others
    ends them. Where it was killed, nobody else would for minutes.
    """
    for name in ("SIGINT", "SIGHUP", "SIGTERM"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)


def _on_cluster(function: Callable[[Any], Any], items: Iterable[Any],
                jobs: int) -> Iterator[tuple[Any, Any]]:
    distributed = import_module("distributed")
    with ExitStack() as stack:
        address = import_module("dask").config.get("scheduler-address", None)
        cluster = address or stack.enter_context(distributed.LocalCluster(
            n_workers=jobs, threads_per_worker=1, dashboard_address="127.0.0.1:0"))
        client = stack.enter_context(distributed.Client(cluster))
        # Not pure: what a scheduler remembers of an earlier sweep is another version's, perhaps.
        asked = {client.submit(function, item, pure=False): item for item in items}
        suspects = []
        for future in distributed.as_completed(asked):
            item = asked.pop(future)
            try:
                yield item, future.result()
            except distributed.KilledWorker:
                suspects.append(item)
            future.release()
        # Whatever waits at a worker is suspected with what kills it. Each alone tells which.
        for item in suspects:
            try:
                yield item, client.submit(function, item, pure=False).result()
            except distributed.KilledWorker as error:
                yield item, error
