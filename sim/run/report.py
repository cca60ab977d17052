"""What a run reports: one dictionary for JSON, one table for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from host.timing.clock import CYCLE_NS
from sim.nic.savings import remote_cache_summary, saved_bytes
from sim.nic.stalls import stalls

if TYPE_CHECKING:
    from sim.job.settings import Runtime
    from sim.run.run import Run
    from sim.run.setup import ClusterSetup

__all__ = ["SCHEMA", "UNREPORTED", "cell", "failures", "hardware", "percentiles", "stopped",
           "summary", "table"]

SCHEMA = "embernic/run/1"

# The first two are under "config", as what they come to. The third changes nothing but the time
# that the same cycles take: results with it and without it are to be equal, field by field.
UNREPORTED = "config", "settings", "clock_gating"
"""Options of a run that its JSON does not have under ``options``."""


def _block(counters: Mapping[str, int], name: str) -> dict[str, int]:
    """Return the counters of one block, without its name."""
    return {key.split(".", 1)[1]: value for key, value in counters.items()
            if key.split(".", 1)[0] == name}


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def hardware(setup: ClusterSetup, runtime: Runtime, counters: list[dict[str, int]] | None,
             wall: float) -> dict:
    """Return what NICs, network, hosts and GPUs counted in ``wall`` seconds, as plain values.

    Without ``counters``, which cannot be read while the run goes on, what they say is None.
    """
    nodes, exchange = setup.cluster.nodes, setup.cluster.exchange
    total = _total(counters)
    cache, dedupe = _block(total, "local_cache"), _block(total, "dedupe")
    ran = sum(node.engine.cycles_run for node in nodes)
    return {
        "node_cycles": {"run": ran, "skipped": sum(node.engine.cycles_skipped for node in nodes),
                        "boot": setup.boot_run},
        "node_cycles_per_second": _ratio(ran - setup.boot_run, wall),
        "stalls": stalls(counters) if counters and None not in total.values() else None,
        "local_cache": None if not (total and runtime.local_cache) else cache | {
            # A repeat inside a mini-batch, which the dedupe table serves, counts as a hit.
            "hit_rate": _ratio(dedupe["requests"] - cache.get("misses", 0), dedupe["requests"]),
            # Of the lookups that entered the cache: one for each key of a mini-batch and owner.
            "hit_rate_unique": _ratio(cache["hits"], cache["accesses"]),
        },
        "dedupe": None if not (total and runtime.dedupe) else dedupe,
        "network": {"packets": exchange.frames, "bytes": exchange.frame_bytes,
                    "lost": exchange.lost_frames},
        "pcie": {"to_nic_bytes": sum(node.host_bytes["to_nic"] for node in nodes),
                 "from_nic_bytes": sum(node.host_bytes["from_nic"] for node in nodes)},
        "gpu": {"launches": sum(node.gpu.launches for node in nodes),
                "rows": sum(node.gpu.rows for node in nodes)},
        "counters": counters,
    }


def _total(counters: list[dict] | None) -> dict:
    """Return the sums over nodes, None of what a model does not count."""
    if not counters:
        return {}
    return {name: None if value is None else sum(node[name] for node in counters)
            for name, value in counters[0].items()}


def summary(run: Run, *, counters: list[dict[str, int]] | None, wall: float, cpu: float,
            stuck: dict | None, complete: bool, interrupted: str | None, next_sample: int,
            under_way: int, unanswered: int, cycles: int, samples: int, lookups: int,
            verdicts: dict[str, int], latencies: list[float], sha256: str, batching: dict) -> dict:
    """Return everything that was measured, as plain values."""
    options, nodes = run.options, run.cluster.nodes
    # A model has no values to compare.
    modelled = options.fidelity == "model"
    measured = hardware(run.setup, run.runtime, counters, wall)
    remote = remote_cache_summary(_block(_total(counters), "remote_cache"), run.foreign_keys)
    saved = remote["hits"] if counters and options.nodes > 1 else None
    measured["network"] |= {
        "saved_lookups": saved,
        "saved_bytes": None if saved is None else saved_bytes(saved, run.model.dimension)}
    return {
        "schema": SCHEMA,
        "complete": complete,
        "interrupted": interrupted,
        "next_sample": None if complete else next_sample,
        "under_way": under_way,
        "config": asdict(run.config) | {"runtime": asdict(run.runtime)},
        "model": {"name": run.model.name, "tables": run.model.tables,
                  "rows": sum(run.model.rows), "dimension": run.model.dimension},
        "options": {name: value for name, value in asdict(options).items()
                    if name not in UNREPORTED},
        "samples": samples,
        "lookups": lookups,
        "batching": batching,
        "nodes": options.nodes,
        "engine": None if modelled else options.engine,
        "fidelity": options.fidelity,
        "cycles": cycles,
        "simulated_seconds": cycles * CYCLE_NS * 1e-9,
        "wall_seconds": wall,
        # Of the process: evaluating the NICs, the hosts beside them, the check of the results with
        # the predictions, making mini-batches, and all that is left, which is the network, handing
        # out the work, and threads that look for more of it. Of another clock, as the first of them
        # is formed before the run begins: forming mini-batches.
        "cpu_seconds": {"total": cpu, "checks": run.checks.seconds, "inputs": run.steps.seconds,
                        "batching": run.batcher.seconds} | {
            part: sum(node.seconds[part] for node in nodes) for part in ("nics", "hosts")},
        "bit_identical": None if modelled else bool(samples) and not (
            verdicts["different"] or verdicts["refused"] or unanswered or stuck),
        "results": verdicts | {"unanswered": unanswered} | (
            {"equal": None, "different": None} if modelled else {}),
        "stuck": stuck and stuck["message"],
        "where_stuck": stuck,
        "remote_cache": remote if saved is not None and run.runtime.remote_cache else None,
        "interaction": None if not run.runtime.interaction else {
            "mode": run.model.interaction, "itself": run.model.interaction_itself,
            "width": run.model.interaction_width,
            "dense_vectors": sum(node.dense.sent for node in nodes)},
        "errors": sum(len(node.errors) for node in nodes),
        "latency_us": percentiles(latencies),
        "latencies_us": latencies,
        "phases_us": None,
        "predictions_sha256": sha256 if samples and not modelled else None,
    } | measured


def percentiles(values: Sequence[float]) -> dict[str, float | None]:
    """Return the median, the 99th percentile and the largest of ``values``, None of none."""
    return {name: float(np.percentile(values, part)) if values else None
            for name, part in (("p50", 50), ("p99", 99), ("max", 100))}


def failures(result: dict) -> list[str]:
    """Return what is wrong with a finished run, a line each; empty when it is good."""
    found = []
    outcome = result["results"]
    if outcome["different"]:
        found.append(f"{outcome['different']} of {result['samples']} samples differ from the "
                     f"numpy model")
    if outcome["refused"]:
        found.append(f"{outcome['refused']} samples were refused by the NIC")
    if outcome["unanswered"]:
        found.append(f"{outcome['unanswered']} samples were never answered: {result['stuck']}")
    return found


def stopped(result: dict) -> str | None:
    """Return how a run that was stopped is gone on with; None for any other."""
    if result["interrupted"] is None:
        return None
    first, following = result["options"]["first_sample"], result["next_sample"]
    said = f"stopped by {result['interrupted']}"
    if following == first:
        return f"{said} before a mini-batch was finished: the same command starts again"
    return (f"{said} with samples {first:,} to {following - 1:,} finished. To go on, add "
            f"--first-sample {following} and name other files for all but --predictions, which "
            f"goes on in its file. Caches start cold there: latencies and counters are of two "
            f"runs, the predictions put together are those of the whole.")


def cell(value: object) -> str:
    """Return ``value`` as a table shows it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:,.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(result: dict) -> Table:
    """Return the table that a run ends with."""
    shown = Table(title=f"EmberNIC run: {result['model']['name']} on {result['nodes']} x "
                        f"{result['config']['name']}, {result['engine'] or result['fidelity']}",
                  title_justify="left")
    shown.add_column("what")
    shown.add_column("value", justify="right")
    shown.add_column("unit")

    def row(what: str, value: object, unit: str = "") -> None:
        shown.add_row(what, cell(value), unit)

    cache, dedupe = result["local_cache"] or {}, result["dedupe"] or {}
    row("samples", result["samples"])
    row("lookups", result["lookups"])
    batching = result["batching"]
    row("mini-batches formed by", batching["algorithm"])
    row("samples of a window", batching["window"])
    row("unique keys of a mini-batch", batching["unique_keys"])
    row("similarity of a mini-batch", batching["similarity"])
    row("bit-identical to the numpy model", result["bit_identical"])
    row("simulated time", result["simulated_seconds"] * 1e6, "us")
    row("samples per simulated second",
        _ratio(result["samples"], result["simulated_seconds"] * 1e6), "million")
    for name in ("p50", "p99", "max"):
        row(f"mini-batch latency {name}", result["latency_us"][name], "us")
    row("dedupe: requests", dedupe.get("requests"))
    row("dedupe: unique keys", dedupe.get("unique"))
    row("dedupe: retired early", dedupe.get("retired_early"))
    row("local cache: accesses", cache.get("accesses"))
    row("local cache: hit rate, every lookup", cache.get("hit_rate"))
    row("local cache: hit rate, unique keys", cache.get("hit_rate_unique"))
    row("local cache: conflict misses", cache.get("conflict_misses"))
    remote = result["remote_cache"] or {}
    row("remote cache: hit rate, every lookup", remote.get("hit_rate"))
    row("lookups kept off the network", result["network"]["saved_lookups"])
    for stall in (result["stalls"] or {"by_cause": []})["by_cause"]:
        row(f"node {stall['node']}: {stall['means']}", stall["cycles"], "cycles")
    row("rows fetched from the GPU", result["gpu"]["rows"])
    row("gathers on the GPU", result["gpu"]["launches"])
    done = result["interaction"]
    row("interaction on the NIC", done and f"{done['mode']}{', itself' * done['itself']}")
    row("values of a result", done and done["width"])
    row("network packets", result["network"]["packets"])
    row("network bytes", result["network"]["bytes"], "B")
    row("PCIe bytes to and from the NIC",
        result["pcie"]["to_nic_bytes"] + result["pcie"]["from_nic_bytes"], "B")
    row("node-cycles run", result["node_cycles"]["run"])
    row("node-cycles skipped", result["node_cycles"]["skipped"])
    row("wall time", result["wall_seconds"], "s")
    row("node-cycles run per second", result["node_cycles_per_second"])
    row("CPU time, all of it", result["cpu_seconds"]["total"], "s")
    row("CPU time of the NICs", result["cpu_seconds"]["nics"], "s")
    row("CPU time of the hosts beside them", result["cpu_seconds"]["hosts"], "s")
    row("CPU time of making mini-batches", result["cpu_seconds"]["inputs"], "s")
    row("CPU time of checks and predictions", result["cpu_seconds"]["checks"], "s")
    row("predictions SHA-256", (result["predictions_sha256"] or "-")[:16] + "...")
    return shown
