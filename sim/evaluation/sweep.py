"""Measure many points, each once, and keep each as soon as it is finished."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gen.base.signals import Interrupted
from host.data.contents import check_contents, contents
from host.errors import InputError
from sim.evaluation.backends import each
from sim.evaluation.store import Store, data_of, plain

__all__ = ["Outcome", "Progress", "Results", "sweep"]


Progress = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a point: ``metrics``, or ``error``, the reason in one line why there are none.
    """

    point: Any
    metrics: dict | None
    error: str | None = None


class Results(Mapping[Any, Outcome]):
    """Outcomes by point, in the order in which the points were asked for.

    Members: ``resumed``, points that were on disk already.
    """

    def __init__(self, outcomes: Mapping[Any, Outcome], resumed: int = 0):
        self._outcomes = dict(outcomes)
        self.resumed = resumed

    def __getitem__(self, point: Any) -> Outcome:
        return self._outcomes[point]

    def __iter__(self):
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    @property
    def failed(self) -> list[Outcome]:
        """The points without metrics."""
        return [outcome for outcome in self._outcomes.values() if outcome.metrics is None]

    def value(self, point: Any, metric: str) -> float | None:
        """Return a metric (``latency_us.p99`` is a member of a member), None where it is not."""
        outcome = self._outcomes.get(point)
        found: Any = outcome.metrics if outcome else None
        for name in metric.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return found


def sweep(points: Iterable[Any], measure: Callable[[Any], dict], store: Store,
          backend: str = "loky", jobs: int | None = None,
          progress: Progress | None = None, order: Callable[[list], list] | None = None,
          effort: Callable[[Any], float] = lambda point: 1.0) -> Results:
    """Measure every point that ``store`` does not hold yet.

    Parameters
    ----------
    points: hashable dataclasses; one that is there twice is measured once.
    measure: gives a point's metrics; for more than one job it must be importable.
    backend, jobs: see :mod:`sim.evaluation.backends`. They change no byte of the results.
    progress: called at the start and after each point, with the number of points done, of all
        points, and the share of the work done.
    order: returns points in the order in which they are to be begun; it changes no results.
    effort: returns how much work a point is.

    A point whose measuring raises an exception is an outcome without metrics; the next sweep
    measures it again. When a signal ends the sweep, finished points are kept and a note says so.

    Raises
    ------
    InputError
        A data file or a profile cannot be read: every other point would fail likewise. Or a data
        file was changed meanwhile: what was measured is of neither.
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
        error.add_note(f"{done} of {len(wanted)} points are finished; the same command goes on")
        raise
    return Results({point: outcome for point, outcome in outcomes.items() if outcome}, resumed)


class _Work:
    """Measures a point and gives its outcome, or the error in an input file."""

    def __init__(self, measure: Callable[[Any], dict]):
        self._measure = measure

    def __call__(self, point: Any) -> Outcome | InputError:
        try:
            return Outcome(point, plain(self._measure(point)))
        except InputError as error:
            return error
        except Exception as error:  # the other points are measured all the same
            return _failed(point, error)


def _failed(point: Any, error: Exception) -> Outcome:
    """Return the outcome of a point that has no metrics."""
    text = " ".join(str(error).split()) or "no message"
    return Outcome(point, None, f"{type(error).__name__}: {text}")
