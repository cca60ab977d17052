"""The fault suite: measures and checks every cell."""

from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from sim.evaluation.store import Results, Store
from sim.evaluation.sweep import sweep
from sim.faults.cells import ClusterCell, LinkCell, cluster_cells, link_cells
from sim.faults.measure import measure
from sim.files.identity import sources_of

__all__ = ["SCHEMA", "faults", "suffers"]

SCHEMA = "embernic/faults/1"

LEAST_INJECTED = 10
"""Least number of injected faults in a cell with a rate."""

_EXPECTED_FAILURE = "silent"


def faults(folder: str | Path, short: bool = False, jobs: int | None = None,
           progress: Callable[[int, int, float], None] | None = None) -> dict:
    """Measure all cells that are not in ``folder``, and check them.

    Returns ``schema``, ``version``; ``links`` and ``clusters``, a row per cell with its fields, its
    metrics (see :func:`sim.faults.measure.measure`), ``calm_cycles`` of clusters (cycles without
    faults), and ``wrong``, a text on the failed checks or None; ``failed``, cells that could not be
    measured, with their ``error``.

    short: measure only cells that take seconds.
    jobs, progress: see :func:`sim.evaluation.sweep.sweep`.
    """
    links, clusters = link_cells(short), cluster_cells(short)
    calm = list(dict.fromkeys(cell.calm for cell in clusters))
    found = sweep([*clusters, *calm, *links], measure,
                  Store(Path(folder) / "cells", sources_of(measure)), jobs=jobs, progress=progress)
    return {
        "schema": SCHEMA, "version": version("embernic"),
        "links": [_row(cell, found, _wrong_link(cell, found)) for cell in links
                  if _metrics(cell, found)],
        "clusters": [_row(cell, found, _wrong_cluster(cell, found))
                     | {"calm_cycles": (_metrics(cell.calm, found) or {})["cycles"]}
                     for cell in clusters
                     if _metrics(cell, found) and _metrics(cell.calm, found)],
        "failed": [{"cell": asdict(outcome.point), "error": outcome.error}
                   for outcome in found.failed]}


def suffers(result: dict) -> bool:
    """Return whether any check of a result failed."""
    return bool(result["failed"]) or any(
        row["wrong"] for part in ("links", "clusters") for row in result[part])


def _metrics(cell: LinkCell | ClusterCell, found: Results) -> dict | None:
    return found[cell].metrics


def _row(cell: LinkCell | ClusterCell, found: Results, wrong: str | None) -> dict:
    return asdict(cell) | (_metrics(cell, found) or {}) | {"wrong": wrong}


def _wrong_link(cell: LinkCell, found: Results) -> str | None:
    """Return the failed checks of a transfer as text."""
    got = _metrics(cell, found) or {}
    silent = cell.group == _EXPECTED_FAILURE
    checks = {
        "packets are missing": got["delivered"] < got["sent"] and not silent,
        "packets were admitted more than once": got["doubled"] > 0,
        "packets were changed": got["changed"] > 0,
        "traffic did not end": not got["over"],
        "a peer was given up": got["given_up"] > 0 and not silent,
        "the silent peer was not given up": not got["given_up"] and silent,
        f"fewer than {LEAST_INJECTED} faults":
            cell.traffic.faults is not None and not silent and "#" not in cell.traffic.faults
            and got["injected"] < LEAST_INJECTED,
    }
    return _said(checks)


def _wrong_cluster(cell: ClusterCell, found: Results) -> str | None:
    """Return the failed checks of a run as text."""
    got, calm = _metrics(cell, found) or {}, _metrics(cell.calm, found) or {}
    checks = {
        "the run failed: " + "; ".join(got["failures"]): bool(got["failures"]),
        "values differ from the run without faults": got["hash"] != calm["hash"],
        f"fewer than {LEAST_INJECTED} faults": got["injected"] < LEAST_INJECTED,
    }
    return _said(checks)


def _said(checks: dict[str, bool]) -> str | None:
    return "; ".join(text for text, holds in checks.items() if holds) or None
