"""``reproduce results``: measure the rows of the results page and write it."""

import json
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from gen.base.files import write_whole
from host.timing.cluster import load_cluster
from sim.evaluation.compared import hashes_of
from sim.evaluation.measured import measured
from sim.evaluation.point import Point, Task
from sim.evaluation.sweep import Parts, Progress
from sim.evaluation.trace import trace_key
from sim.experiments.results.answer import answer_of
from sim.experiments.results.cases import OWN, Case, Measured, values_of
from sim.experiments.results.page import page_of
from sim.experiments.results.picture import chart_of
from sim.experiments.results.rows import csv_rows, place_of, row_of_case
from sim.experiments.results.serving import csv_rows as csv_of_served
from sim.experiments.results.serving import row_of_served, served_of
from sim.experiments.sensitivity.kinds import in_words
from sim.experiments.sensitivity.spread import Spread
from sim.page.html import render
from sim.page.png import write_png
from sim.page.rows import csv_text

__all__ = ["FILES", "SCHEMA", "results"]

SCHEMA = "embernic/results/2"

FILES = ("results.json", "results.csv", "results.png", "results.html")
"""Files that :func:`results` writes."""


Serve = Callable[[Case, Path, int | None, Progress | None], dict]
"""Serves a row, see :func:`sim.serving.case.serve_case`."""

_SERVING = 0.02
"""Approximate share of a served row in the work of the page."""


def results(cases: Sequence[Case], output: str | Path, backend: str = "loky",
            jobs: int | None = None, progress: Progress | None = None,
            how: Callable[[Point | Task], dict] | None = None, command: str = "",
            serve: Serve | None = None) -> dict:
    """Measure rows and write `FILES`.

    Parameters
    ----------
    cases: rows, see :func:`sim.experiments.results.cases.cases_of`.
    output: folder. It keeps finished measurements in ``points`` and NIC runs in ``runs``.
    backend, jobs, progress: see :func:`sim.evaluation.sweep.sweep`.
    how: measures a system; :func:`sim.evaluation.measure.measure` by default.
    command: further options of the command line, shown on the page.
    serve: serves a row; None for a page without serving.

    Returns
    -------
    The content of ``results.json``: ``schema``, ``version``, ``profiles`` (name to hash),
    ``answer`` (where EN loses, and why), ``kinds`` (of uncertain constants: ``kind``, ``width``,
    ``checks`` and ``constants``), ``points``, ``failed``, ``rows``, see
    :func:`sim.experiments.results.rows.row_of_case`, and ``serving``, see
    :func:`sim.experiments.results.serving.row_of_served`.
    """
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    tasks = list(dict.fromkeys(task for case in cases for task in case.tasks()))
    shown = served_of(cases) if serve else []
    tell = Parts(progress, [len(tasks), *(1 for _ in shown)],
                 [1 - _SERVING * len(shown), *(_SERVING for _ in shown)])
    found = measured(tasks, folder, _in_turn, how, backend, jobs, tell.part(0))
    rows = [row_of_case(case, found) for case in cases]
    served, failed = _served(shown, serve, folder, jobs, tell) if serve else ([], [])
    made = {"schema": SCHEMA, "version": version("embernic"),
            "profiles": {name: digest for cluster in dict.fromkeys(case.cluster for case in cases)
                         for name, digest in hashes_of(load_cluster(cluster)).items()},
            "answer": answer_of(rows),
            "kinds": in_words(name for case in cases for name, _ in case.spread.widths),
            "points": len(found),
            "failed": [{"point": outcome.point.in_words(), "error": outcome.error}
                       for outcome in found.failed] + failed, "rows": rows, "serving": served}
    write_whole(str(folder / "results.json"), json.dumps(made, indent=1, allow_nan=False) + "\n")
    write_whole(str(folder / "results.csv"), csv_text([*csv_rows(rows), *csv_of_served(served)]))
    if any(row["ratios"][OWN] for row in rows):
        write_png(chart_of(rows), folder / "results.png")
    again = f"python -m sim reproduce results{command} --output DIR"
    write_whole(str(folder / "results.html"), render(page_of(made, again)))
    return made


def _served(cases: Sequence[Case], serve: Serve, folder: Path, jobs: int | None,
            tell: Parts) -> tuple[list[dict], list[dict]]:
    """Return the served rows, and the parts that failed."""
    rows, failed = [], []
    for number, case in enumerate(cases, 1):
        told = tell.part(number)
        try:
            found = serve(case, folder / "serving", jobs,
                          lambda done, of, share: told(0, 1, share))
        except ValueError as error:  # the rows are still shown
            failed.append({"point": f"serving, {case.workload}", "error": str(error)})
            continue
        told(1, 1, 1.0)
        rows.append(row_of_served(case, found))
        failed += [{"point": f"serving, {place_of(rows[-1])}, {each['what']}",
                    "error": each["error"]} for each in found["failed"]]
    return rows, failed


def _in_turn(tasks: list[Measured | Spread]) -> list[Measured | Spread]:
    """Return the measurements of the largest traces first, and of equal traces in sequence: a
    process caches few traces."""
    return sorted(tasks, key=lambda task: (-values_of(task.workload),
                                           repr(trace_key(task.workload))))
