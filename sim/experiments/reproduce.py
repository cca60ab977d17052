"""``reproduce``: measure points, write figures and tables, judge claims, and write the page."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import numpy as np

from gen.base.files import write_whole
from host.systems.devices import profiles_of
from host.toml.profile import load_profile, profile_hash
from sim.evaluation.measured import measured
from sim.evaluation.point import Point, Task, in_turn, in_words
from sim.evaluation.setting import Setting
from sim.evaluation.store import Outcome, Results, plain
from sim.evaluation.sweep import Progress
from sim.experiments.claims.headlines import headlines
from sim.experiments.claims.judge import judge
from sim.experiments.figures.exhibit import Exhibit
from sim.experiments.figures.registry import chosen, exhibit
from sim.experiments.page import Shown, page_of
from sim.page.html import render
from sim.page.png import write_png
from sim.page.rows import csv_text

__all__ = ["SCHEMA", "points_of", "reproduce"]

SCHEMA = "embernic-claims-2"


def points_of(names: Iterable[str], setting: Setting) -> list[Point | Task]:
    """Return every point that figures and tables need, without duplicates."""
    return list(dict.fromkeys(
        point for name in names for point in exhibit(name).points(setting)))


def reproduce(names: Iterable[str], setting: Setting, output: str | Path, backend: str = "loky",
              jobs: int | None = None, progress: Progress | None = None,
              how: Callable[[Point | Task], dict] | None = None, command: str = "") -> dict:
    """Measure the points of ``names`` and write figures, tables, ``claims.json`` and
    ``index.html``.

    Parameters
    ----------
    names: of :data:`sim.experiments.figures.registry.NAMES`, or ``all``.
    setting: setting of the evaluation.
    output: folder. It keeps finished points in ``points`` and NIC runs in ``runs``.
    backend, jobs, progress: see :func:`sim.evaluation.sweep.sweep`.
    how: measures a point; :func:`sim.evaluation.measure.measure` by default.
    command: further options of the command line, shown on the page.

    Returns
    -------
    The content of ``claims.json``: ``schema``, ``version``, ``numpy``, ``blas``, ``profiles`` (name
        to hash), ``setting``, ``sources``, ``figures``, ``seeded`` (figures measured with all
        seeds), ``points``, ``failed``, ``headlines``, ``claims``.

    Raises ``ValueError``, :class:`host.errors.InputError` and ``OSError``.
    """
    names, folder = chosen(names), Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    results = measured(points_of(names, setting), folder, in_turn, how, backend, jobs, progress)
    shown = [_write(exhibit(name), setting, results, folder, command) for name in names]
    judged = [row for row in judge(setting, results) if set(row["figures"]) & set(names)]
    found = _made_with(setting, results) | {
        "figures": list(names), "seeded": [
            name for name in names if exhibit(name).over_seeds(setting)],
        "points": len(results),
        "failed": [_failure(outcome, setting) for outcome in results.failed],
        "headlines": headlines(setting, results), "claims": judged}
    write_whole(str(folder / "claims.json"), json.dumps(found, indent=1, allow_nan=False) + "\n")
    write_whole(str(folder / "index.html"), render(page_of(found, setting, results, shown)))
    return found


def _write(shown: Exhibit, setting: Setting, results: Results, folder: Path,
           command: str) -> Shown:
    """Write the pictures and the CSV file of a figure, or the CSV file of a table."""
    rows = shown.rows(setting, results)
    charts = shown.charts(setting, results, rows)
    for chart in charts:
        write_png(chart, folder / f"{chart.name}.png")
    write_whole(str(folder / f"{shown.name}.csv"), csv_text(rows))
    return Shown(shown.name, shown.title, shown.about,
                 f"python -m sim reproduce {shown.name}{command} --output DIR",
                 shown.answer(setting, results, rows), charts,
                 shown.sections(setting, results, rows))


def _made_with(setting: Setting, results: Results) -> dict:
    """Return versions, profiles, setting, and sources of samples."""
    profiles = {name: kind for software in setting.softwares
                for name, kind in profiles_of(software, setting.gpu).items()}
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[index]
    sources = {outcome.point.workload.name: outcome.metrics["source"]
               for outcome in results.values() if outcome.metrics}
    return {"schema": SCHEMA, "version": version("embernic"), "numpy": np.__version__,
            "blas": blas["name"],
            "profiles": {name: profile_hash(load_profile(name, kind))
                         for name, kind in profiles.items()},
            "setting": plain(asdict(setting)),
            "sources": {dataset: sources.get(dataset, str(setting.source(dataset)))
                        for dataset in setting.datasets}}


def _failure(outcome: Outcome, setting: Setting) -> dict:
    """Return a description of a failed point, and the reason."""
    return {"point": in_words(outcome.point, setting.seed), "error": outcome.error}
