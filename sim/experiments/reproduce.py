"""``reproduce``: sweep, figures, claims and the page, into one folder."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np

from gen.files import write_whole
from host.systems.devices import profiles_of
from host.toml.profile import load_profile, profile_hash
from sim.experiments.claims.book import Book, mean
from sim.experiments.claims.judge import judge
from sim.experiments.claims.page import render
from sim.experiments.claims.verdict import times
from sim.experiments.figures import FIGURES
from sim.experiments.figures.beyond import EXTRAS, beyond_points, beyond_rows
from sim.experiments.figures.likeness import LIKENESS, batching_rows, draw_fig06, draw_fig08
from sim.experiments.figures.likeness import fig06 as rows_of_fig06
from sim.experiments.figures.likeness import fig08 as rows_of_fig08
from sim.experiments.figures.picture import draw_figure
from sim.experiments.figures.sensitivity import sensitivity_points, sensitivity_rows
from sim.experiments.figures.table import csv_text, rows_of
from sim.experiments.figures.tornado import draw_tornado
from sim.experiments.points.measure import measure
from sim.experiments.points.point import Point
from sim.experiments.points.setting import BASES, Setting
from sim.experiments.points.systems import BASELINES, parts_of
from sim.experiments.points.trace import trace_key
from sim.experiments.sweep.sweep import Progress, Results, sweep
from sim.files.store import Store, plain

__all__ = ["DEMO_FIGURES", "NAMES", "SCHEMA", "chosen", "in_turn", "points_of", "reproduce"]

SCHEMA = "embernic-claims-1"
NAMES = (*LIKENESS, *FIGURES, "tornado", "beyond")
"""What can be asked for; ``all`` is everything."""

DEMO_FIGURES = ("fig06", "fig08", "fig22", "fig25", "fig27")

_OTHER = {
    "fig06": ("Rows by how often they are used, both axes logarithmic.", rows_of_fig06, draw_fig06),
    "fig08": ("Mini-batches one after the other until a window is drained.", rows_of_fig08,
              draw_fig08)}


@dataclass(frozen=True)
class _Drawn:
    """A figure on disk."""

    name: str
    title: str
    about: str
    picture: str
    command: str


def chosen(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names without repeats, in the order of `NAMES`; ``all`` or none is all of them.

    Raises ``ValueError`` for a name that is none.
    """
    wanted = list(names) or ["all"]
    for name in wanted:
        if name not in (*NAMES, "all"):
            raise ValueError(f"figure must be one of {', '.join(NAMES)} or all, not {name!r}")
    return tuple(name for name in NAMES if name in wanted or "all" in wanted)


def points_of(names: Iterable[str], setting: Setting) -> list[Point]:
    """Return every point that these need, without repeats."""
    points: list[Point] = []
    for name in names:
        if name in FIGURES:
            points += FIGURES[name].points(setting)
        elif name == "tornado":
            points += sensitivity_points(setting)
        elif name == "beyond":
            points += beyond_points(setting)
    return list(dict.fromkeys(points))


def reproduce(names: Iterable[str], setting: Setting, output: str | Path, backend: str = "loky",
              jobs: int | None = None, progress: Progress | None = None,
              how: Callable[[Point], dict] | None = None, command: str = "") -> dict:
    """Measure what ``names`` need and write figures, ``claims.json`` and ``index.html``.

    Parameters
    ----------
    names: of `NAMES`, or ``all``. setting: of the evaluation.
    output: folder; finished points stay in ``points`` in it, runs of NICs that they share in
        ``runs``, and are not measured again.
    backend, jobs: see :mod:`sim.experiments.sweep.backends`. progress: see `sweep`.
    how: measures a point, in place of :func:`sim.experiments.points.measure.measure`.
    command: the options with which this was asked, for the page.

    Returns
    -------
    What ``claims.json`` holds: ``schema``, ``version``, ``numpy``, ``blas``, ``profiles`` (name to
    hash), ``setting``, ``sources``, ``figures``, ``points``, ``failed``, ``headlines``, ``claims``.

    Raises ``ValueError``, :class:`host.errors.InputError` and ``OSError``.
    """
    names, folder = chosen(names), Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    results = sweep(points_of(names, setting),
                    how or partial(measure, runs=Store(folder / "runs")),
                    Store(folder / "points"), backend, jobs, progress, in_turn, _effort)
    drawn = [_draw(name, setting, results, folder, command) for name in names if name != "beyond"]
    beyond = beyond_rows(setting, results) if "beyond" in names else []
    if beyond:
        write_whole(str(folder / "beyond.csv"), csv_text(beyond))
    judged = [row for row in judge(setting, results) if set(row["figures"]) & set(names)]
    found = _described(setting, results) | {
        "figures": list(names), "points": len(results),
        "failed": [{"point": _told(outcome.point), "error": outcome.error}
                   for outcome in results.failed],
        "headlines": _headlines(setting, results), "claims": judged}
    write_whole(str(folder / "claims.json"), json.dumps(found, indent=1, allow_nan=False) + "\n")
    write_whole(str(folder / "index.html"), render(_content(found, setting, results, drawn, beyond,
                                                            "fig08" in names)))
    return found


def in_turn(points: Iterable[Point]) -> list[Point]:
    """Return points in the order in which they are begun.

    First in RTL one for each NIC that has to be compiled, which is done side by side; then the
    longest, for none is to be left over at the end, and those of one trace one after the other, for
    a process keeps a few traces.
    """
    ordered = sorted(points, key=_turn)
    compiled = {_built(point): point for point in reversed(ordered) if point.fidelity == "rtl"}
    first = sorted(compiled.values(), key=_turn)
    return first + [point for point in ordered if point not in first]


def _turn(point: Point) -> tuple:
    of = trace_key(point)
    return (point.fidelity != "rtl", -(of.warmup + of.measured) * of.samples, repr(of),
            point.nodes)


def _built(point: Point) -> tuple[str, ...]:
    """Return what tells one compiled NIC of an evaluation from another."""
    return (point.dataset, point.workload) if "sc" in parts_of(point.system) else (point.dataset,)


def _effort(point: Point) -> float:
    """Return how long a point takes, roughly: in samples that run through modelled NICs."""
    samples = point.samples * (point.warmup + point.measured)
    if point.system in BASELINES:
        return 0.05 * samples
    # One mini-batch under way, several, and with the interaction on the NIC.
    return samples * (2 if point.depth > 1 else 1) * (25 if point.fidelity == "rtl" else 1)


def _draw(name: str, setting: Setting, results: Results, folder: Path, command: str) -> _Drawn:
    picture = folder / f"{name}.png"
    if name in FIGURES:
        figure = FIGURES[name]
        title, about = figure.title, figure.about
        rows = rows_of(figure, setting, results)
        draw_figure(figure, setting, results, picture)
    elif name == "tornado":
        title = "What the speedup of the full system hangs on"
        about = ("Every constant that is unverified or known at second hand, halved and doubled, "
                 "each alone; the baseline is charged it alike.")
        rows = sensitivity_rows(setting, results)
        draw_tornado(setting, results, picture)
    else:
        about, made, draw = _OTHER[name]
        title, rows = LIKENESS[name], made(setting)
        draw(rows, setting, picture)
    write_whole(str(folder / f"{name}.csv"), csv_text(rows))
    return _Drawn(name, title, about, str(picture),
                  f"python -m sim reproduce {name}{command} --output DIR")


def _described(setting: Setting, results: Results) -> dict:
    """Return what results are made with."""
    profiles = {name: kind for software in setting.softwares
                for name, kind in profiles_of(software, setting.gpu).items()}
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[index]
    said = {dataset: outcome.metrics["source"] for outcome in results.values()
            if outcome.metrics for dataset in (outcome.point.dataset,)}
    return {"schema": SCHEMA, "version": version("embernic"), "numpy": np.__version__,
            "blas": blas["name"],
            "profiles": {name: profile_hash(load_profile(name, kind))
                         for name, kind in profiles.items()},
            "setting": plain(asdict(setting)),
            "sources": {dataset: said.get(dataset, str(setting.source(dataset)))
                        for dataset in setting.datasets}}


def _headlines(setting: Setting, results: Results) -> list[dict]:
    """Return the speedups of the full system, of both profiles, against both baselines."""
    rows = []
    for workload in ("inference", "training"):
        for software in setting.softwares:
            for base in BASES:
                found = Book(setting, results, software, base).speedups("fs", workload)
                rows.append({"workload": workload, "software": software, "base": base,
                             "mean": mean(found), "speedups": found})
    return rows


def _content(found: dict, setting: Setting, results: Results, drawn: list[_Drawn], beyond: list,
             batching: bool) -> dict:
    """Return what the page shows."""
    claims = found["claims"]
    agree, differ = (sum(row["agrees"] is value for row in claims) for value in (True, False))
    notes = sorted({note for outcome in results.values() if outcome.metrics
                    for note in outcome.metrics.get("notes") or ()})
    return {
        "setting": _setting_lines(found, setting),
        "headlines": [row | {"mean": "n/a" if row["mean"] is None else f"{row['mean']:.2f}x",
                             "each": times(row["speedups"])} for row in found["headlines"]],
        "claims": claims,
        "tally": f"Of {len(claims)} claims {agree} agree, {differ} do not, "
                 f"{len(claims) - agree - differ} were not measured.",
        "batching": _batching(setting, results) if batching else [],
        "beyond": beyond, "extras": EXTRAS, "figures": drawn, "failed": found["failed"],
        "notes": notes}


def _setting_lines(found: dict, setting: Setting) -> list[tuple[str, str]]:
    sizes = ", ".join(f"{setting.mini_batch(name):,} ({name})" for name in setting.datasets)
    return [
        ("data", "; ".join(f"{name}: {source}" for name, source in found["sources"].items())),
        ("cluster", f"{setting.nodes} nodes where a figure does not sweep them, {setting.gpu}, "
                    "100 Gb/s through one switch, MTU 1,500"),
        ("mini-batch", f"{sizes} samples over all nodes, dealt in contiguous shares"),
        ("graph algorithm", "window of 16 mini-batches, over the global stream"),
        ("caches", "each of 10 % of the unique keys that reach it; LRU, float32; requester-side "
                   "merge off, dedupe on"),
        ("measured", f"{setting.measured} mini-batches after {setting.warmup} of warm-up"),
        ("sweeps", "; ".join(
            f"{name}: {setting.sweep(name)['measured']} mini-batches after as many, where cache "
            f"sizes or nodes are swept, every other size, {_listed(setting, name)} nodes"
            for name, _ in setting.swept if name in setting.datasets)
            or "as many"),
        ("in flight", "4 mini-batches in inference, 1 in training"),
        ("NIC fidelity", setting.fidelity + (
            ", and rtl at the diamonds" if setting.markers else "")),
        ("judged on", "inference: time per mini-batch in steady state; training: samples per "
                      "second, the MLPs' all-reduce included"),
        ("points", f"{found['points']}, of which {len(found['failed'])} failed"),
        ("made with", f"EmberNIC {found['version']}, NumPy {found['numpy']}, {found['blas']}; "
                      + ", ".join(f"{name} {digest[:8]}"
                                  for name, digest in found["profiles"].items()))]


def _listed(setting: Setting, dataset: str) -> str:
    *others, last = setting.numbers_of_nodes(dataset)
    return f"{', '.join(map(str, others))} and {last}" if others else str(last)


def _batching(setting: Setting, results: Results) -> list[dict]:
    rows = []
    for dataset in setting.datasets:
        found = batching_rows(setting, dataset)
        best = max(row["saved"] for row in found)
        for row in found:
            saved = "n/a"
            if row["algorithm"] == "graph":
                plain, graph = (results.value(setting.point(dataset, system), "interval_us")
                                for system in ("bl-paper", "ga"))
                saved = "n/a" if plain is None or graph is None else f"{plain - graph:.0f}"
            rows.append(row | {"dataset": dataset, "wins": row["saved"] == best,
                               "time_saved": saved})
    return rows


def _told(point: Point) -> str:
    """Return a point in words."""
    more = [f"{name} {value}" for name, value in (
        ("local cache", point.local_cache), ("remote cache", point.remote_cache)) if value]
    more += [f"{name} x{factor:g}" for name, factor in point.scaled]
    return ", ".join([point.label, point.dataset, point.workload, f"{point.nodes} nodes",
                      f"mini-batch {point.samples}", point.software, point.fidelity, *more,
                      *point.settings])
