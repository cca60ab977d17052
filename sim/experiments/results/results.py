"""``reproduce results``: measure the rows of the results page and write it."""

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Protocol

from gen.base.files import write_whole
from host.timing.cluster import load_cluster
from sim.evaluation.compared import hashes_of
from sim.evaluation.measured import measured
from sim.evaluation.point import Point, Task
from sim.evaluation.sweep import Parts, Progress
from sim.evaluation.trace import trace_key
from sim.experiments.results.answer import answer_of
from sim.experiments.results.cases import OWN, Case, values_of
from sim.experiments.results.page import page_of
from sim.experiments.results.picture import chart_of
from sim.experiments.results.rows import csv_rows, place_of, row_of_case
from sim.experiments.results.serving import csv_rows as csv_of_served
from sim.experiments.results.serving import row_of_served, served_of
from sim.experiments.sensitivity.kinds import in_words
from sim.page.html import render
from sim.page.png import write_png
from sim.page.rows import csv_text

__all__ = ["FILES", "SCHEMA", "results"]

SCHEMA = "embernic/results/2"

FILES = ("results.json", "results.csv", "results.png", "results.html")
"""Files that :func:`results` writes."""


class Serve(Protocol):
    """Serves a row, see :func:`sim.serving.case.serve_case`."""

    def __call__(self, case: Case, folder: Path, jobs: int | None, progress: Progress | None, *,
                 runs: Path, searched: Mapping[Task, Mapping]) -> dict:
        """Serve ``case``; ``runs``: folder of the page's NIC runs; ``searched``: finished searches.
        """
        ...

_SERVING = 0.02
"""Approximate share of a served row in the work of the page."""


def results(cases: Sequence[Case], output: str | Path, backend: str = "loky",
            jobs: int | None = None, progress: Progress | None = None,
            how: Callable[[Point | Task], dict] | None = None, command: str = "",
            serve: Serve | None = None,
            searches: Callable[[Case], Sequence[Task]] = lambda case: ()) -> dict:
    """Measure rows and write `FILES`.

    Parameters
    ----------
    cases: rows, see :func:`sim.experiments.results.cases.cases_of`.
    output: folder. It keeps finished measurements in ``points`` and NIC runs in ``runs``.
    backend, jobs, progress: see :func:`sim.evaluation.sweep.sweep`.
    how: measures a system; :func:`sim.evaluation.measure.measure` by default.
    command: further options of the command line, shown on the page.
    serve: serves a row; None for a page without serving.
    searches: returns the searches of a served row, which take longest. They are measured with the
        rows, so that all processes have work.

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
    shown = served_of(cases) if serve else []
    of_served = [[*searches(case)] for case in shown]
    # The searches that differ come first: a later search waits for runs of NICs that an equal one
    # has begun.
    first = [task for case in cases if case.why is None for task in case.systems]
    tasks = list(dict.fromkeys([*first, *chain(*(case.tasks() for case in cases))]))
    every = list(dict.fromkeys([*first, *chain(*of_served), *tasks]))
    tell = Parts(progress, [len(every), *(1 for _ in shown)],
                 [1 - _SERVING * len(shown), *(_SERVING for _ in shown)])
    found = measured(every, folder, _in_turn, how, backend, jobs, tell.part(0))
    rows = [row_of_case(case, found) for case in cases]
    searched = [{search: metrics for search in own if (metrics := found[search].metrics)}
                for own in of_served]
    served, failed = _served(shown, searched, serve, folder, jobs, tell) if serve else ([], [])
    made = {"schema": SCHEMA, "version": version("embernic"),
            "profiles": {name: digest for cluster in dict.fromkeys(case.cluster for case in cases)
                         for name, digest in hashes_of(load_cluster(cluster)).items()},
            "answer": answer_of(rows),
            "kinds": in_words(name for case in cases for name, _ in case.spread.widths),
            "points": len(tasks),
            "failed": [{"point": outcome.point.in_words(), "error": outcome.error}
                       for outcome in found.failed if outcome.point in tasks] + failed,
            "rows": rows, "serving": served}
    write_whole(str(folder / "results.json"), json.dumps(made, indent=1, allow_nan=False) + "\n")
    write_whole(str(folder / "results.csv"), csv_text([*csv_rows(rows), *csv_of_served(served)]))
    if any(row["ratios"][OWN] for row in rows):
        write_png(chart_of(rows), folder / "results.png")
    again = f"python -m sim reproduce results{command} --output DIR"
    write_whole(str(folder / "results.html"), render(page_of(made, again)))
    return made


def _served(cases: Sequence[Case], searched: Sequence[Mapping[Task, Mapping]], serve: Serve,
            folder: Path, jobs: int | None, tell: Parts) -> tuple[list[dict], list[dict]]:
    """Return the served rows of cases with finished searches, and the parts that failed."""
    rows, failed = [], []
    for number, (case, own) in enumerate(zip(cases, searched), 1):
        told = tell.part(number)
        try:
            found = serve(case, folder / "serving", jobs,
                          lambda done, of, share: told(0, 1, share), runs=folder / "runs",
                          searched=own)
        except ValueError as error:  # the rows are still shown
            failed.append({"point": f"serving, {case.workload}", "error": str(error)})
            continue
        told(1, 1, 1.0)
        rows.append(row_of_served(case, found))
        failed += [{"point": f"serving, {place_of(rows[-1])}, {each['what']}",
                    "error": each["error"]} for each in found["failed"]]
    return rows, failed


def _in_turn(tasks: list[Task]) -> list[Task]:
    """Return the measurements of the largest traces first, and of equal traces in sequence: a
    process caches few traces."""
    return sorted(tasks, key=lambda task: (-values_of(task.workload),
                                           repr(trace_key(task.workload))))
