"""What a training reports: one dictionary for JSON, one table for the terminal."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.table import Table

from sim.report import cell
from sim.training.intervals import finite

if TYPE_CHECKING:
    from sim.training.train import Training

__all__ = ["SCHEMA", "failures", "interval_line", "stopped", "summary", "table"]

SCHEMA = "embernic/train/1"


def summary(training: Training, *, complete: bool, interrupted: str | None, rows: int | None,
            wall: float, weights: str | None, predictions: str | None) -> dict:
    """Return everything that a training came to, as plain values.

    While it goes on, ``rows`` and ``weights``, which take long to tell, are None.
    """
    options, run, model = training.options, training.options.run, training.model
    return {
        "schema": SCHEMA,
        "complete": complete,
        "interrupted": interrupted,
        "config": asdict(training.config) | {"runtime": asdict(training.runtime)},
        "model": {"name": model.name, "tables": model.tables, "rows": sum(model.rows),
                  "dimension": model.dimension},
        "options": {name: value for name, value in asdict(run).items()
                    if name not in ("config", "settings")},
        "optimizer": asdict(options.optimizer),
        "gradient_partials": training.runtime.gradient_partials,
        "fidelity": options.fidelity,
        "engine": run.engine if options.fidelity == "rtl" else None,
        "nodes": run.nodes,
        "epochs": options.epochs,
        "checkpoint": options.checkpoint,
        "first_step": training.first_step,
        "steps": len(training.losses),
        "samples": training.samples,
        "lookups": training.lookups,
        "loss": [finite(loss) for loss in training.losses],
        "intervals": training.intervals.rows,
        "rows_written": rows,
        "weights_sha256": weights,
        "predictions_sha256": predictions,
        "wall_seconds": wall,
    } | _NO_NICS


_NO_NICS = dict.fromkeys((
    "cycles", "simulated_seconds", "samples_per_second", "node_cycles", "node_cycles_per_second",
    "bit_identical", "results", "stuck", "where_stuck", "stalls", "local_cache", "remote_cache",
    "dedupe", "update_misses", "network", "pcie", "gpu", "errors", "latency_us", "latencies_us",
    "phases_us", "counters"))
"""What only NICs have."""


def failures(result: dict) -> list[str]:
    """Return what is wrong with a finished training, a line each; empty when it is good."""
    return []


def stopped(result: dict) -> str | None:
    """Return how a training that was stopped is gone on with; None for any other."""
    if result["interrupted"] is None:
        return None
    said = f"stopped by {result['interrupted']}"
    done = result["first_step"] + result["steps"]
    if not result["steps"]:
        return f"{said} before a step was finished: the same command starts again"
    if result["checkpoint"] is None:
        return f"{said} after {done:,} steps; no --checkpoint was named, so that they are lost"
    return (f"{said} after {done:,} steps, which {result['checkpoint']} holds: the same command "
            f"goes on there")


def interval_line(row: dict) -> str:
    """Return one line that says how an interval went."""
    last = row["first_step"] + row["steps"]
    return (f"epoch {row['epoch'] + 1}, step {last:,}: loss {_digits(row['loss'])}, accuracy "
            f"{_digits(row['accuracy'])}, AUC {_digits(row['auc'])}")


def _digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.5f}"


def table(result: dict) -> Table:
    """Return the table that a training ends with."""
    engine = result["engine"] or "numpy"
    shown = Table(title=f"EmberNIC training: {result['model']['name']} on {result['nodes']} x "
                        f"{result['config']['name']}, {engine}", title_justify="left")
    for column, justify in (("what", "left"), ("value", "right"), ("unit", "left")):
        shown.add_column(column, justify=justify)
    last = result["intervals"][-1] if result["intervals"] else {}
    for what, value in (
            ("steps", result["steps"]), ("samples", result["samples"]),
            ("lookups", result["lookups"]), ("loss of the last interval", last.get("loss")),
            ("accuracy of the last interval", last.get("accuracy")),
            ("AUC of the last interval", last.get("auc")),
            ("rows written", result["rows_written"])):
        shown.add_row(what, cell(value), "")
    shown.add_row("wall time", cell(result["wall_seconds"]), "s")
    shown.add_row("weights SHA-256", (result["weights_sha256"] or "-")[:16] + "...", "")
    return shown
