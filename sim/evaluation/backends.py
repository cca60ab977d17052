"""Where the points of a sweep are measured: this process, processes, or a cluster of machines."""

import os
import pickle
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from importlib import import_module
from typing import Any

from embernic_extras import require
from sim.files.identity import OtherCode, check_code, sources_hash

__all__ = ["BACKENDS", "check_backend", "each"]

BACKENDS = ("loky", "dask")
"""``loky`` starts processes on this machine. ``dask`` is an extra: it uses the cluster whose
scheduler ``DASK_SCHEDULER_ADDRESS`` names, else one that it starts on this machine."""

_WATCH_SECONDS = 0.5
"""How often a worker looks whether the process that started it is there."""


def check_backend(backend: str, jobs: int | None) -> int:
    """Return the number of jobs, by default one for each processor.

    Raises ``ValueError`` for a backend that does not exist, or for fewer jobs than one, and
    :class:`embernic_extras.ExtraError` for a backend that is not installed.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, not {backend!r}")
    if backend == "dask":
        require("distributed", "backend 'dask'")
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
    by an exception, the calls under way are ended.

    Raises ``ChildProcessError`` if a process of ``loky`` dies, and ``ValueError`` if the code of a
    process or worker is not that of this process (:mod:`sim.files.identity`): nothing that it
    measures is taken.
    """
    jobs = check_backend(backend, jobs)
    if backend == "loky" and jobs == 1:
        yield from ((item, function(item)) for item in items)
        return
    with closing((_in_processes if backend == "loky" else _on_cluster)(
            _Same(function), items, jobs)) as outcomes:
        try:
            yield from outcomes
        except OtherCode as error:
            raise ValueError(str(error)) from None


class _Same:
    """Calls ``function`` in another process, if the code there is that of this process.

    The code is compared before the function is unpacked, and for each item: workers join later.
    """

    def __init__(self, function: Callable[[Any], Any]):
        # Slow to load. It also packs functions of a script, which other processes cannot import.
        from joblib.externals.loky.backend.reduction import dumps

        self._packed, self._code = bytes(dumps(function)), sources_hash()

    def __call__(self, item: Any) -> Any:
        check_code(self._code, _worker())
        return pickle.loads(self._packed)(item)


def _worker() -> str:
    """Return the name of this process for a message, of a worker of Dask its address."""
    distributed = sys.modules.get("distributed")
    try:
        return f"worker {distributed.get_worker().address}"  # type: ignore[union-attr]
    except (AttributeError, ValueError):
        return f"process {os.getpid()}"


def _check_worker(code: str) -> None:
    check_code(code, _worker())


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
        except BrokenProcessPool as error:
            ends = re.search(r"exit codes of the workers are \{(.*)\}", str(error))
            raise ChildProcessError(
                f"a worker process died ({ends[1] if ends else 'its exit status is unknown'}), as "
                f"it does if memory runs out. Finished points are kept. Run the same command again "
                f"to resume; use fewer --jobs if it fails again") from None


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
        # A worker that is lost meanwhile has another error, which its items will show.
        for worker, error in client.run(_check_worker, sources_hash(), on_error="return").items():
            if isinstance(error, OtherCode):
                raise OtherCode(f"worker {worker}", error.found)
            if isinstance(error, (ImportError, AttributeError)):
                raise ValueError(f"worker {worker} must have the EmberNIC of this process, but "
                                 f"{error}: install the same version there")
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
