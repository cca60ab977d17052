"""``serve``: latency of requests at a load, and each system's highest load within a p99."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from host.data.contents import contents
from host.systems.devices import profiles_of
from host.toml.profile import load_profile, profile_hash
from sim.evaluation.nic_run import store_of_runs
from sim.evaluation.point import Point, effort, in_turn
from sim.evaluation.store import Outcome, Results, Store, plain
from sim.evaluation.sweep import Parts, Progress, sweep
from sim.files.identity import sources_of
from sim.serving.chosen import Chosen, chosen
from sim.serving.measured import MiniBatches, measured
from sim.serving.search import Choice, Search
from sim.serving.setting import LADDER, AtLoad, Setting, Within, parts, points_of
from sim.serving.system import System

__all__ = ["SCHEMA", "searches_of", "serve"]

SCHEMA = "embernic/serve/1"

_NOTHING = ("p50_us", "p99_us", "p99_9_us", "mini_batch", "window", "timeout_us",
            "mean_mini_batch", "utilisation", "requests", "per_sample")

_SHARES = (0.3, 0.2, 0.3, 0.2)
"""Approximate shares of options, mini-batches, loads and bounds in the work."""


def serve(setting: Setting, systems: Sequence[str], loads: Sequence[float] | None,
          slos_us: Sequence[float], folder: str | Path, jobs: int | None = None,
          progress: Progress | None = None, runs: str | Path | None = None,
          searched: Mapping[Chosen, Mapping] | None = None) -> dict:
    """Measure systems under load.

    Parameters
    ----------
    setting: setting of all systems. systems: their names.
    loads: requests per second at which each system is measured; None for `LADDER`, up to the
        capacity of the fastest system.
    slos_us: bounds on the p99.
    folder: keeps finished searches, mini-batches, NIC runs and loads.
    jobs: processes, by default one per processor. progress: see :func:`sim.evaluation.sweep.sweep`.
    runs: folder of NIC runs that other measurements share; by default a folder in ``folder``.
    searched: finished searches of :func:`searches_of`.

    Returns
    -------
    ``schema``, ``version``, ``numpy``, ``blas``, ``profiles`` (name to hash), ``options``,
        ``source`` of the samples, ``notes``, and lists of rows:

    ``systems``: for each ``system`` the ``options`` chosen at ``mini_batch``, or ``why`` it cannot
    be built, see :func:`sim.serving.chosen.chosen`. The search runs NICs in fidelity ``model``.
    ``notes`` contain the options of the other mini-batches.

    ``mini_batches``: for each ``system``, ``mini_batch`` and ``graph`` (whether the graph algorithm
    formed it) ``service_us``, ``interval_us``, ``samples_per_second`` and ``per_sample``, see
    :data:`sim.serving.measured.COSTS`.

    ``loads``: for each ``system`` and ``qps`` whether it is ``saturated``; otherwise ``p50_us``,
    ``p99_us``, ``p99_9_us``; ``mini_batch``, ``window`` (mini-batches formed together) and
    ``timeout_us``, chosen for the least p99; ``mean_mini_batch``, ``utilisation``, ``requests``
    (measured), ``per_sample``.

    ``slos``: for each ``system`` and ``slo_us`` the highest ``qps`` within it, 0 if it is below the
    lowest load, with the same members; ``more`` is True if every measured load is served;
    ``alone_us`` is the time of the fastest mini-batch alone, a lower bound of the latency.

    ``failed``: failed parts, with reasons.

    Raises ``ValueError``, :class:`host.errors.InputError` and ``OSError``.
    """
    folder = Path(folder)
    kept, store = store_of_runs(runs or folder / "runs"), _mini_batches(folder)
    wanted, options = searches_of(setting, systems), Store(folder / "options", sources_of(Chosen))
    for search, metrics in (searched or {}).items():
        options.put(search, metrics)
    tell = Parts(progress, [len(systems), sum(len(each.points) for each in wanted),
                            len(systems) * len(LADDER), len(systems) * len(slos_us)], _SHARES)
    searches = sweep(wanted, partial(chosen, runs=kept), options, jobs=jobs, progress=tell.part(0))
    rows = [outcome.metrics for outcome in searches.values() if outcome.metrics]
    points = {row["system"]: points_of(setting, row["system"], searched=row["mini_batch"],
                                       **row["fields"]) for row in rows if row["fields"]}
    found = sweep([point for each in points.values() for point in each],
                  partial(measured, runs=kept), store, jobs=jobs,
                  progress=tell.part(1), order=in_turn, effort=effort)
    notes, there = _there(points, found, {row["system"]: row["options"] for row in rows})
    done = _Done(setting, folder, jobs, there)
    at = done.at_loads(dict.fromkeys([*LADDER, *(loads or ())]), tell.part(2))
    bounds = done.within(at, slos_us, tell.part(3))
    failed = [*searches.failed, *found.failed, *at.failed, *bounds.failed]
    if loads is None:
        top = max((outcome.point.qps for outcome in at.values() if _choice(outcome)), default=0.0)
        loads = [qps for qps in LADDER if qps <= top] + [qps for qps in LADDER if qps > top][:1]
    return _made_with(setting) | {
        "options": plain(asdict(setting)) | {"systems": list(systems)},
        "source": next((outcome.metrics["source"] for outcome in found.values()
                        if outcome.metrics), None),
        "notes": notes,
        "systems": [{name: row[name] for name in ("system", "mini_batch", "options", "why")}
                    for row in rows],
        "mini_batches": [_mini_batch_row(system, found[point].metrics or {})
                         for system, each in there.items() for point in each],
        "loads": [_load_row(at, setting, system, qps) for system in there for qps in loads],
        "slos": [_slo_row(at, bounds, setting, system, slo) | {"alone_us": min(
            (found[point].metrics or {})["service_us"] for point in each)}
            for system, each in there.items() for slo in slos_us],
        "failed": [{"what": _in_words(outcome.point), "error": outcome.error}
                   for outcome in failed]}


class _Done:
    """Loads and bounds of a setting, measured and stored.

    Parameters: ``setting``; ``folder``; ``jobs``; ``points`` of each system.
    """

    def __init__(self, setting: Setting, folder: Path, jobs: int | None,
                 points: dict[str, list[Point]]):
        self._setting, self._folder, self._jobs, self._points = setting, folder, jobs, points

    def at_loads(self, loads, progress: Progress) -> Results:
        """Return the outcome of each system at each load."""
        return self._sweep([AtLoad(**parts(self._setting), system=system, qps=qps)
                            for system in self._points for qps in loads], _at_load, progress)

    def within(self, at: Results, slos_us: Sequence[float], progress: Progress) -> Results:
        """Return the outcome of each system and bound that is between two loads of ``at``."""
        wanted = []
        for system in self._points:
            for slo in slos_us:
                served, over = _bracket(at, self._setting, system, slo)
                if served and over:
                    wanted.append(Within(**parts(self._setting), system=system, slo_us=slo,
                                         served=served, over=over))
        return self._sweep(wanted, _within, progress)

    def _sweep(self, wanted, how: Callable[..., dict], progress: Progress) -> Results:
        return sweep(wanted, partial(_Task(how), str(self._folder), self._points),
                     Store(self._folder / "loads", sources_of(Search, System)),
                     jobs=self._jobs, progress=progress)


class _Task:
    """Calls ``how`` with the search of the task's system; picklable."""

    def __init__(self, how: Callable[[Search, Any], Choice | None]):
        self._how = how

    def __call__(self, folder: str, points: dict[str, list[Point]],
                 task: AtLoad | Within) -> dict:
        system = _system(folder, tuple(points[task.system]), task.in_flight, contents(task.data))
        chosen = self._how(Search(system, task.process(), task.requests, task.candidates), task)
        return {"choice": None if chosen is None else asdict(chosen)}


def searches_of(setting: Setting, systems: Sequence[str]) -> list[Chosen]:
    """Return the search of each system, from which :func:`serve` begins."""
    return [_search(setting, system) for system in systems]


def _search(setting: Setting, system: str) -> Chosen:
    """Return the search of a system: mini-batches that the graph algorithm formed come first."""
    points = points_of(replace(setting, fidelity="model"), system)
    points.sort(key=lambda point: (point.workload.samples, point.workload.batching != "file"),
                reverse=True)
    return Chosen(system, tuple(points), setting.gpu_memory_bytes)


def _mini_batches(folder: Path) -> Store:
    return Store(folder / "mini-batches", sources_of(MiniBatches))


def _at_load(search: Search, task: AtLoad) -> Choice | None:
    return search.best(task.qps)


def _within(search: Search, task: Within) -> Choice | None:
    return search.most_within(task.slo_us, task.served, task.over)


@lru_cache(maxsize=2)
def _system(folder: str, points: tuple[Point, ...], in_flight: int, _: tuple[str, ...]) -> System:
    store = _mini_batches(Path(folder))
    return System([MiniBatches.of(store.get(point) or {}) for point in points], in_flight)


def _there(points: dict[str, list[Point]], found: Results,
           options: dict[str, list[str]]) -> tuple[list[str], dict[str, list[Point]]]:
    """Return notes that are not among the chosen ``options``, and the measured points of each
    usable system.

    A system with a failed point is excluded, because it would have fewer choices than the others.
    """
    sizes_of: dict[tuple[str, str], list[str]] = {}
    there: dict[str, list[Point]] = {}
    for system, each in points.items():
        outcomes = [metrics for point in each if (metrics := found[point].metrics) is not None]
        if len(outcomes) < len(each):
            continue
        for point, metrics in zip(each, outcomes):
            if metrics["applicable"]:
                there.setdefault(system, []).append(point)
            notes = metrics["notes"] if metrics["applicable"] else [metrics["why"]]
            for note in (each for each in notes if each not in options[system]):
                sizes = sizes_of.setdefault((system, note), [])
                sizes += [size for size in [f"{point.workload.samples:,}"] if size not in sizes]
        if not any(point.workload.batching == "file" for point in there.get(system, ())):
            there.pop(system, None)
    return [f"{system}, mini-batches of {', '.join(sizes)}: {note}"
            for (system, note), sizes in sizes_of.items()], there


def _bracket(at: Results, setting: Setting, system: str,
             slo_us: float) -> tuple[float | None, float | None]:
    """Return the highest load that is served within a p99, and the next load; None if missing.

    Only the highest served load counts: with fewer requests, a system that keeps its timeout has
    less work, so a failed choice at a lower load does not matter.
    """
    loads = sorted(task.qps for task in at if task.system == system)
    chosen = {qps: _choice(at[AtLoad(**parts(setting), system=system, qps=qps)]) for qps in loads}
    served = [qps for qps, choice in chosen.items()
              if choice and choice["served"]["p99_us"] <= slo_us]
    if not served:
        return None, None
    return served[-1], next((qps for qps in loads if qps > served[-1]), None)


def _choice(outcome: Outcome | None) -> dict | None:
    return outcome.metrics["choice"] if outcome and outcome.metrics else None


def _row(choice: dict | None) -> dict:
    """Return a choice and its result."""
    if choice is None:
        return dict.fromkeys(_NOTHING)
    served, batcher = choice["served"], choice["batcher"]
    return {name: served[name] for name in ("p50_us", "p99_us", "p99_9_us")} | batcher | {
        "mean_mini_batch": served["mini_batch"],
        **{name: served[name] for name in ("utilisation", "requests", "per_sample")}}


def _load_row(at: Results, setting: Setting, system: str, qps: float) -> dict:
    outcome = at[AtLoad(**parts(setting), system=system, qps=qps)]
    choice = _choice(outcome)
    return {"system": system, "qps": qps,
            "saturated": None if outcome.metrics is None else choice is None} | _row(choice)


def _slo_row(at: Results, bounds: Results, setting: Setting, system: str, slo_us: float) -> dict:
    served, over = _bracket(at, setting, system, slo_us)
    choice = None
    if served is not None:
        choice = _choice(at[AtLoad(**parts(setting), system=system, qps=served)])
    if served is not None and over is not None:
        # The search between the two may find nothing better than the lower load.
        choice = _choice(bounds[Within(**parts(setting), system=system, slo_us=slo_us,
                                       served=served, over=over)]) or choice
    return {"system": system, "slo_us": slo_us, "qps": choice["qps"] if choice else 0.0,
            "more": served is not None and over is None} | _row(choice)


def _mini_batch_row(system: str, metrics: dict) -> dict:
    return {"system": system} | {name: metrics[name] for name in (
        "mini_batch", "graph", "service_us", "interval_us")} | {
        "samples_per_second": metrics["mini_batch"] / metrics["interval_us"] * 1e6,
        "per_sample": metrics["per_sample"]}


def _made_with(setting: Setting) -> dict:
    """Return versions and profiles."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[index]
    return {"schema": SCHEMA, "version": version("embernic"), "numpy": np.__version__,
            "blas": blas["name"],
            "profiles": {name: profile_hash(load_profile(name, kind)) for name, kind in
                         profiles_of(setting.software, setting.gpu, setting.link, setting.network,
                                     setting.inside).items()}}


def _in_words(point: Chosen | Point | AtLoad | Within) -> str:
    if isinstance(point, Chosen):
        return point.in_words()
    if isinstance(point, Point):
        return f"{point.label}, mini-batch {point.workload.samples:,}"
    if isinstance(point, AtLoad):
        return f"{point.system} at {point.qps:,.0f}/s"
    return f"{point.system} within {point.slo_us:g} us"
