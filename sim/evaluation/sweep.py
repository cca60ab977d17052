"""Measure many points, each once, in processes or on a cluster; keep each that is finished."""

import os
import pickle
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from importlib import import_module
from typing import Any

from embernic_extras import require
from gen.base.signals import Interrupted
from host.data.contents import check_contents, contents
from host.errors import InputError
from sim.evaluation.store import Outcome, Results, Store, data_of, plain
from sim.files.identity import OtherCode, check_code, sources_hash

__all__ = ["Parts", "Progress", "check_backend", "each", "sweep"]

Progress = Callable[[int, int, float], None]
"""Callback: points done, all points, share of the work done."""


def sweep(points: Iterable[Any], measure: Callable[[Any], dict], store: Store,
          backend: str = "loky", jobs: int | None = None,
          progress: Progress | None = None, order: Callable[[list], list] | None = None,
          effort: Callable[[Any], float] = lambda point: 1.0) -> Results:
    """Measure every point that ``store`` does not contain.

    Parameters
    ----------
    points: hashable dataclasses; a duplicate is measured once.
    measure: returns a point's metrics; importable if there are several jobs.
    backend, jobs: see :func:`each`; the results do not depend on them.
    progress: called at the start and after each point.
    order: sorts the points that are to be measured; the results do not depend on it.
    effort: work of a point, in any unit.

    If ``measure`` raises an exception, the outcome has no metrics, and the next sweep measures the
    point again. Finished points are kept if a signal ends the sweep.

    Raises :class:`host.errors.InputError` if a data file or profile is unreadable, or if a data
    file changes during the sweep.
    """
    wanted = list(dict.fromkeys(points))
    read = {data: contents(data) for data in map(data_of, wanted)}
    outcomes: dict[Any, Outcome | None] = {}
    for point in wanted:
        kept = store.get(point)
        outcomes[point] = None if kept is None else Outcome(point, kept)
    missing = [point for point, outcome in outcomes.items() if outcome is None]
    if order is not None:
        missing = order(missing)
    done = resumed = len(wanted) - len(missing)
    left, work = sum(map(effort, missing)), sum(map(effort, wanted))
    if progress:
        progress(done, len(wanted), 1 - left / work if work else 1.0)
    try:
        for point, outcome in each(_Work(measure), missing, backend, jobs):
            if isinstance(outcome, InputError):
                raise outcome
            if not isinstance(outcome, Outcome):
                outcome = _failed(point, outcome)
            if outcome.metrics is not None:
                check_contents(data_of(outcome.point), read[data_of(outcome.point)])
                store.put(outcome.point, outcome.metrics)
            outcomes[outcome.point] = outcome
            done += 1
            left -= effort(outcome.point)
            if progress:
                progress(done, len(wanted), 1 - left / work)
    except Interrupted as error:
        error.add_note(f"{done} of {len(wanted)} points are finished; run the same command again "
                       f"to resume")
        raise
    return Results({point: outcome for point, outcome in outcomes.items() if outcome}, resumed)


class Parts:
    """Reports several consecutive sweeps as one progress.

    Parameters: ``progress``, or None; ``counts``, points of each sweep; ``shares`` of the work.
    """

    def __init__(self, progress: Progress | None, counts: Sequence[int], shares: Sequence[float]):
        self._progress, self._counts, self._shares = progress, counts, shares

    def part(self, number: int) -> Progress:
        """Return the progress of a sweep."""
        before, total = sum(self._counts[:number]), sum(self._counts)
        first = sum(self._shares[:number])

        def told(done: int, of: int, share: float) -> None:
            if self._progress:
                skipped = self._counts[number] - of
                self._progress(before + skipped + done, total,
                               first + self._shares[number] * share)

        return told


class _Work:
    """Measures a point; returns its outcome, or the error of an input file."""

    def __init__(self, measure: Callable[[Any], dict]):
        self._measure = measure

    def __call__(self, point: Any) -> Outcome | InputError:
        try:
            return Outcome(point, plain(self._measure(point)))
        except InputError as error:
            return error
        except Exception as error:  # the sweep continues with the other points
            return _failed(point, error)


def _failed(point: Any, error: Exception) -> Outcome:
    """Return the outcome of a failed point."""
    text = " ".join(str(error).split()) or "no message"
    return Outcome(point, None, f"{type(error).__name__}: {text}")


BACKENDS = ("loky", "dask")
"""``loky`` starts processes on this machine. ``dask`` is an extra: it uses the cluster of the
scheduler ``DASK_SCHEDULER_ADDRESS``, or starts a local cluster if the variable is unset."""

_MOST_CACHED = 6 << 30
"""Bytes by which a worker may grow before another replaces it."""

_WATCH_SECONDS = 0.5
"""Interval at which a worker checks that its parent process is alive."""


def check_backend(backend: str, jobs: int | None) -> int:
    """Return the number of jobs, by default one per processor.

    Raises ``ValueError`` for an unknown backend or ``jobs`` below 1, and
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
    """Yield every item with ``function(item)``, in the order of completion.

    One job of ``loky`` runs in this process. ``jobs`` does not apply to an existing Dask cluster.
    Dask gives an item to another worker if its worker dies; an item that kills several workers is
    yielded with the exception. Calls in flight are cancelled if the caller stops early.

    Raises ``ChildProcessError`` if a ``loky`` process dies, and ``ValueError`` if a worker runs
    other code (:mod:`sim.files.identity`).
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
    """Calls ``function`` in another process that runs the same code.

    The code is compared for each item, because workers may join later, and before unpickling.
    """

    def __init__(self, function: Callable[[Any], Any]):
        # Slow to import. It also pickles functions of a script, which workers cannot import.
        from joblib.externals.loky.backend.reduction import dumps

        self._packed, self._code = bytes(dumps(function)), sources_hash()

    def __call__(self, item: Any) -> Any:
        check_code(self._code, _worker())
        return pickle.loads(self._packed)(item)


def _worker() -> str:
    """Return the name of this process for a message: a Dask worker's address, or the PID."""
    distributed = sys.modules.get("distributed")
    try:
        return f"worker {distributed.get_worker().address}"  # type: ignore[union-attr]
    except (AttributeError, ValueError):
        return f"process {os.getpid()}"


def _check_worker(code: str) -> None:
    check_code(code, _worker())


def _in_processes(function: Callable[[Any], Any], items: Iterable[Any],
                  jobs: int) -> Iterator[tuple[Any, Any]]:
    # Slow to import, and unused with one job.
    import joblib
    from joblib.externals.loky.process_executor import BrokenProcessPool

    _start_tracker()
    work = joblib.delayed(_called)
    # Batches of one, because each point is stored as soon as it is finished.
    outcomes: Any = joblib.Parallel(
        n_jobs=jobs, batch_size=1, pre_dispatch="2*n_jobs", backend="loky",
        return_as="generator_unordered", initializer=_begin_worker, initargs=(os.getpid(),))(
            work(function, item) for item in items)
    with warnings.catch_warnings(), closing(outcomes):
        # loky restarts a worker whose caches have grown; no item is lost.
        warnings.filterwarnings("ignore", "A worker stopped", UserWarning)
        # Raised if a signal ends the sweep.
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
    """Start loky's resource tracker with SIGHUP blocked; it ends with this process."""
    from joblib.externals.loky.backend.resource_tracker import ensure_running

    if not hasattr(signal, "pthread_sigmask"):
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
    try:
        ensure_running()  # it inherits the blocked signals
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _called(function: Callable[[Any], Any], item: Any) -> tuple[Any, Any]:
    return item, function(item)


def _begin_worker(parent: int) -> None:
    """Ignore the terminal's signals, keep caches, and end this worker when its parent process ends.

    The parent ends its workers on a signal. If the parent is killed, the worker must notice it.
    """
    for name in ("SIGINT", "SIGHUP", "SIGTERM"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    # loky would end a worker whose caches exceed 300 MB after any item, and the next would form the
    # same trace again. :mod:`sim.evaluation.trace` limits the traces that a process keeps.
    executor = import_module("joblib.externals.loky.process_executor")
    if hasattr(executor, "_MAX_MEMORY_LEAK_SIZE"):
        executor._MAX_MEMORY_LEAK_SIZE = _MOST_CACHED
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
        # Other errors, such as a lost worker, appear again with the worker's items.
        for worker, error in client.run(_check_worker, sources_hash(), on_error="return").items():
            if isinstance(error, OtherCode):
                raise OtherCode(f"worker {worker}", error.found)
            if isinstance(error, (ImportError, AttributeError)):
                raise ValueError(f"worker {worker} must have the EmberNIC of this process, but "
                                 f"{error}: install the same version there")
        # Not pure: a scheduler's cached result may come from another version.
        asked = {client.submit(function, item, pure=False): item for item in items}
        suspects = []
        for future in distributed.as_completed(asked):
            item = asked.pop(future)
            try:
                yield item, future.result()
            except distributed.KilledWorker:
                suspects.append(item)
            future.release()
        # Every item queued at a killed worker is suspect; running each alone identifies the cause.
        for item in suspects:
            try:
                yield item, client.submit(function, item, pure=False).result()
            except distributed.KilledWorker as error:
                yield item, error
