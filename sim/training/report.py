"""Report of a training: a dictionary for JSON and a table for the terminal."""

from collections import Counter
from dataclasses import asdict

from rich.table import Table

from host.dlrm.formats import padding_notes
from sim.run.report import HIT_RATES, cell, refused, repeat_rows, shortened, with_remedy
from sim.training.intervals import finite
from sim.training.measurements import Measurements

__all__ = ["SCHEMA", "failures", "interval_line", "stopped", "summary", "table"]

SCHEMA = "embernic/train/1"


def summary(training: Measurements) -> dict:
    """Return all measurements as plain values."""
    options, run, model = training.options, training.options.run, training.model
    return {
        "schema": SCHEMA,
        "complete": training.complete,
        "interrupted": training.interrupted,
        "config": asdict(training.config) | {"runtime": asdict(training.runtime)},
        "model": {"name": model.name, "tables": model.tables, "rows": sum(model.rows),
                  "dimension": model.dimension,
                  "dimensions": list(model.dimensions), "poolings": list(model.poolings)},
        "notes": [*padding_notes(model, run.workload.wire), *training.notes],
        "options": run.as_dict(),
        "optimizer": asdict(options.learning.rule),
        "pool": list(training.pool),
        "update": options.learning.update if training.pool else None,
        "gradient_wire": options.gradient_wire,
        "local_reduction": training.runtime.local_reduction,
        "gradient_partials": training.runtime.gradient_partials,
        "fidelity": options.method.fidelity,
        "engine": run.simulation.engine if options.method.fidelity == "rtl" else None,
        "nodes": run.workload.nodes,
        "epochs": options.learning.epochs,
        "checkpoint": options.record.checkpoint,
        "first_step": training.first_step,
        "steps": len(training.losses),
        "samples": training.samples,
        "lookups": training.lookups,
        "batching": training.batching,
        "loss": [finite(loss) for loss in training.losses],
        "intervals": training.intervals,
        "rows_written": training.rows,
        "weights_sha256": training.weights,
        "predictions_sha256": training.predictions,
        "wall_seconds": training.wall,
    } | _NO_NICS | training.nics


_NO_NICS = dict.fromkeys((
    "cycles", "simulated_seconds", "samples_per_second", "node_cycles", "node_cycles_per_second",
    "bit_identical", "results", "rows_compared", "stuck", "where_stuck", "stalls", "local_cache",
    "remote_cache", "dedupe", "update_misses", "spilled", "spilling_passes", "backward",
    "network", "faults", "all_reduce", "pcie", "gpu", "errors", "latency_us", "latencies_us",
    "phases_us", "repeats", "counters"))
"""Fields that only a training on NICs fills."""


def failures(result: dict) -> list[str]:
    """Return the errors of a finished training, a line each; empty if there are none."""
    found = []
    compared, outcome = result["rows_compared"], result["results"]
    if compared and compared["first"] is not None:
        first = compared["first"]
        bound = "" if result["config"]["gradient_sums"] == "exact" else " by more than rounding"
        found.append(
            f"{compared['different']} of {compared['rows']} rows differ from the numpy reference"
            f"{bound}, and {compared['extra']} were written without a gradient; the first is in "
            f"step {first['step']}: row {first['row']} of table {first['table']} at node "
            f"{first['node']} {first['what']}")
    if outcome and outcome["different"]:
        found.append(f"pooled vectors of {outcome['different']} samples differ from the numpy "
                     f"reference")
    if outcome and outcome["refused"]:
        found.append(refused(outcome["refused"], result))
    if result["errors"]:
        counts = Counter(error["status"] for error in result["errors"])
        what = ", ".join(f"{count} for {status}" for status, count in sorted(counts.items()))
        found.append(f"{len(result['errors'])} messages to NICs were refused: {what}")
    if result["stuck"]:
        found.append(f"training is stuck in step {result['first_step'] + result['steps']}: "
                     f"{result['stuck']}")
    return with_remedy(found, result)


def stopped(result: dict) -> str | None:
    """Return how to resume a training that was stopped; None for any other training."""
    if result["interrupted"] is None:
        return None
    said = f"stopped by {result['interrupted']}"
    done = result["first_step"] + result["steps"]
    if not result["steps"]:
        return f"{said} before the first step finished: run the same command again"
    if result["checkpoint"] is None:
        return f"{said} after {done:,} steps, which are lost: no --checkpoint was given"
    return (f"{said} after {done:,} steps, which {result['checkpoint']} holds: run the same "
            f"command again to resume")


def interval_line(row: dict) -> str:
    """Return a line with the loss, accuracy and AUC of an interval."""
    last = row["first_step"] + row["steps"]
    return (f"epoch {row['epoch'] + 1}, step {last:,}: loss {_digits(row['loss'])}, accuracy "
            f"{_digits(row['accuracy'])}, AUC {_digits(row['auc'])}")


def _digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.5f}"


def table(result: dict) -> Table:
    """Return the summary table of a training."""
    engine = result["engine"] or "numpy"
    shown = Table(title=f"EmberNIC training: {result['model']['name']} on {result['nodes']} x "
                        f"{result['config']['name']}, {engine}", title_justify="left")
    for column, justify in (("measurement", "left"), ("value", "right"), ("unit", "left")):
        shown.add_column(column, justify=justify)
    last = result["intervals"][-1] if result["intervals"] else {}
    for what, value in (
            ("steps", result["steps"]), ("samples", result["samples"]),
            ("lookups", result["lookups"]),
            ("mini-batches formed by", result["batching"]["algorithm"]),
            ("unique keys of a mini-batch", result["batching"]["unique_keys"]),
            ("loss of the last interval", last.get("loss")),
            ("accuracy of the last interval", last.get("accuracy")),
            ("AUC of the last interval", last.get("auc")),
            ("rows written", result["rows_written"])):
        shown.add_row(what, cell(value), "")
    if result["engine"] is not None:
        _add_nics(shown, result)
    shown.add_row("wall time", cell(result["wall_seconds"]), "s")
    shown.add_row("weights SHA-256", cell(shortened(result["weights_sha256"])), "")
    return shown


def _compared(result: dict) -> list[tuple[str, object, str]]:
    """Return the rows of the comparison with the reference."""
    compared = result["rows_compared"]
    if result["config"]["gradient_sums"] == "exact" or not compared:
        return [("bit-identical to the numpy reference", result["bit_identical"], "")]
    return [("bit-identical to the numpy reference", "not expected", ""),
            ("rows within the rounding of float32 sums",
             compared["rows"] - compared["different"], ""),
            ("rows that differ from exact sums", compared["rounded"] + compared["different"], "")]


def _add_nics(shown: Table, result: dict) -> None:
    """Add the rows with the measurements of NICs."""
    cache, dedupe = result["local_cache"] or {}, result["dedupe"] or {}
    phases, spilled = dict(result["phases_us"] or {}), result["spilled"]
    if phases:
        phases["exposed all-reduce"] = result["all_reduce"]["exposed_us"] / result["steps"]
        phases["rest"] = phases.pop("rest") - phases["exposed all-reduce"]
    for what, value, unit in (
            *_compared(result),
            ("simulated time", result["simulated_seconds"] * 1e6, "us"),
            ("samples per simulated second", result["samples_per_second"], ""),
            *((f"time per step: {name}", time, "us") for name, time in phases.items()),
            ("updated rows that missed the local cache", result["update_misses"], ""),
            *((label, value, "") for label, value in repeat_rows(result["repeats"])),
            ("dedupe: requests", dedupe.get("requests"), ""),
            ("dedupe: unique keys", dedupe.get("unique"), ""),
            *((label, cache.get(name), "") for name, label in HIT_RATES.items()),
            ("beats of gradients spilled, local", spilled["local"], ""),
            ("beats of gradients spilled, global", spilled["global"], ""),
            ("messages refused", len(result["errors"]), ""),
            ("partial gradients to other nodes", sum(
                node["partials"] for node in result["backward"] or ()), ""),
            ("bytes of partial gradients", sum(
                node["bytes"] for node in result["backward"] or ()), "B"),
            ("network packets", result["network"]["packets"], ""),
            ("network bytes", result["network"]["bytes"], "B"),
            ("PCIe bytes to and from the NIC", sum(result["pcie"].values()), "B"),
            ("node-cycles run", result["node_cycles"]["run"], "")):
        shown.add_row(what, cell(value), unit)
    for stall in (result["stalls"] or {"by_cause": []})["by_cause"]:
        shown.add_row(f"node {stall['node']}: {stall['means']}", cell(stall["cycles"]), "cycles")
