"""Report of a run: a dictionary for JSON and a table for the terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.table import Table

from host.dlrm.formats import padding_notes
from host.timing.clock import CYCLE_NS
from sim.cluster.frame_faults import remedy
from sim.nic.savings import remote_cache_summary, saved_bytes
from sim.node.repeats import RepeatCounts
from sim.run.hardware import block, hardware, percentiles, ratio, total
from sim.run.measurements import Measurements

__all__ = ["HIT_RATES", "SCHEMA", "cell", "cold", "failures", "refused", "repeat_rows",
           "repeats_found", "shortened", "stopped", "summary", "table", "with_remedy"]

SCHEMA = "embernic/run/1"

HIT_RATES = {"hit_rate": "local cache: hit rate per owner lookup",
             "hit_rate_unique": "local cache: hit rate per unique key"}
"""Labels of the hit rates of local caches. Repeats of a key in a mini-batch count as hits in the
first and are left out of the second."""


def summary(run: Measurements) -> dict:
    """Return everything that was measured, as plain values."""
    options, simulation = run.options, run.simulation
    nodes, model, runtime = simulation.cluster.nodes, simulation.model, simulation.runtime
    # A model has no values to compare.
    modelled = options.simulation.fidelity == "model"
    found = hardware(simulation, run.counters, run.wall)
    remote = remote_cache_summary(block(total(run.counters), "remote_cache"), run.foreign_keys)
    saved = remote["hits"] if run.counters and options.workload.nodes > 1 else None
    found["network"] |= {
        "saved_lookups": saved,
        "saved_bytes": None if saved is None else saved_bytes(saved, simulation.lanes.width)}
    return {
        "schema": SCHEMA,
        "complete": run.complete,
        "interrupted": run.interrupted,
        "next_sample": None if run.complete else run.next_sample,
        "under_way": run.under_way,
        "config": asdict(simulation.config) | {"runtime": asdict(runtime)},
        "model": {"name": model.name, "tables": model.tables,
                  "rows": sum(model.rows), "dimension": model.dimension,
                  "dimensions": list(model.dimensions), "poolings": list(model.poolings)},
        "notes": [*padding_notes(model, options.workload.wire), *run.notes],
        "options": options.as_dict(),
        "samples": run.samples,
        "lookups": run.lookups,
        "batching": run.batching,
        "nodes": options.workload.nodes,
        "engine": None if modelled else options.simulation.engine,
        "fidelity": options.simulation.fidelity,
        "cycles": run.cycles,
        "simulated_seconds": run.cycles * CYCLE_NS * 1e-9,
        "wall_seconds": run.wall,
        # CPU time of the process: NICs, hosts, checks (with predictions) and inputs. The rest of
        # the total is the network, handing out work, and threads that look for work. "batching" is
        # no share of the total, because the first mini-batches are formed before the run starts.
        "cpu_seconds": {"total": run.cpu, **run.seconds} | {
            part: sum(node.seconds[part] for node in nodes) for part in ("nics", "hosts")},
        "bit_identical": None if modelled else run.verdicts["equal"] == run.samples > 0 and not (
            run.unanswered or run.stuck),
        "results": run.verdicts | {"unanswered": run.unanswered} | (
            {"equal": None, "different": None} if modelled else {}),
        "stuck": run.stuck and run.stuck["message"],
        "where_stuck": run.stuck,
        "remote_cache": remote if saved is not None and runtime.remote_cache else None,
        "interaction": None if not runtime.interaction else {
            "mode": model.interaction, "itself": model.interaction_itself,
            "width": model.interaction_width,
            "dense_vectors": sum(node.dense.rows for node in nodes)},
        "bags": _bags(run),
        "repeats": repeats_found(options.workload.repeats, run.repeats, run.lookups, run.counters),
        "errors": sum(len(node.errors) for node in nodes),
        "latency_us": percentiles(run.latencies),
        "latencies_us": run.latencies,
        "phases_us": None,
        "predictions_sha256": run.sha256 if run.samples and not modelled else None,
    } | found


def _bags(run: Measurements) -> dict | None:
    """Return the bags that the GPUs pooled, summed over the nodes; None if GPUs pool none."""
    simulation = run.simulation
    if not simulation.plan.gpus_pool:
        return None
    bags = [node.bags for node in simulation.cluster.nodes if node.bags is not None]
    return {"pool": [table.pool.name.lower() for table in simulation.plan.tables],
            "foreign": sum(each.foreign for each in bags), "own": sum(each.own for each in bags),
            "keys": sum(each.keys for each in bags), "lists": sum(each.lists for each in bags),
            "launches": sum(each.launches for each in bags)}


def repeats_found(repeats: str, by_hosts: RepeatCounts, lookups: int,
                  counters: Sequence[Mapping[str, int]] | None) -> dict | None:
    """Return the bags, the repeated bags among them, and the lookups that are sent; None if every
    bag is looked up. If NICs find repeats, the bags are the bags that they compare; None during the
    run, without counters.

    Parameters: ``repeats``, of the workload; ``by_hosts``, counts of repeats that hosts find;
    ``lookups``, of all bags; ``counters`` of each NIC.
    """
    if repeats == "send":
        return None
    if repeats != "nic":
        return {"bags": by_hosts.bags, "sent": by_hosts.bags - by_hosts.repeated,
                "share": ratio(by_hosts.repeated, by_hosts.bags),
                "sent_lookups": by_hosts.lookups - by_hosts.repeated_lookups}
    if not counters:
        return None
    found = block(total(counters), "bag_repeats")
    return {"bags": found["bags"], "sent": found["bags"] - found["repeats"],
            "share": ratio(found["repeats"], found["bags"]),
            "sent_lookups": lookups - found["repeated_keys"], "beyond": found["beyond"]}


def repeat_rows(repeats: dict | None) -> list[tuple[str, object]]:
    """Return the rows of the summary table for :func:`repeats_found`."""
    if repeats is None:
        return []
    return [("bags", repeats["bags"]), ("distinct bags, sent once", repeats["sent"]),
            ("share of repeated bags", repeats["share"]),
            ("bags that NICs cannot remember", repeats.get("beyond"))]


def failures(result: dict) -> list[str]:
    """Return a line per failure of a finished run."""
    found = []
    outcome = result["results"]
    if outcome["different"]:
        found.append(f"{outcome['different']} of {result['samples']} samples differ from the "
                     f"numpy model")
    if outcome["refused"]:
        found.append(refused(outcome["refused"], result))
    if outcome["unanswered"]:
        found.append(f"{outcome['unanswered']} samples were not answered: {result['stuck']}")
    elif result["stuck"]:
        found.append(f"mini-batches were answered but not completed: {result['stuck']}")
    return with_remedy(found, result)


def refused(samples: int, result: dict) -> str:
    """Return the failure that NICs rejected ``samples`` of a run or a training."""
    why = f": {result['given_up']}" if result["given_up"] else ""
    return f"{samples} samples were rejected by the NIC{why}"


def with_remedy(found: list[str], result: dict) -> list[str]:
    """Return the failures, the last with the option to add if frames were changed."""
    network, faults = result["network"], result["faults"]
    said = remedy(sum(row["frames"] for row in faults["injected"]) if faults else 0,
                  network["queue_drops"] if network else 0, result["config"]["link"],
                  result["fidelity"] == "model")
    if not found or not said or said in found[-1]:
        return found
    return [*found[:-1], f"{found[-1]}; {said}"]


def stopped(result: dict) -> str | None:
    """Return how to continue a run that was stopped; None for any other run."""
    if result["interrupted"] is None:
        return None
    first, following = result["options"]["first_sample"], result["next_sample"]
    said = f"stopped by {result['interrupted']}"
    if following == first:
        return f"{said} before a mini-batch was finished: run the same command again"
    return (f"{said} with samples {first:,} to {following - 1:,} finished. To continue, add "
            f"--first-sample {following} and name new output files, except for --predictions, "
            f"which is appended to. Caches start cold again: latencies and counters are those of "
            f"two separate runs, but the predictions are those of one uninterrupted run.")


def cold(result: dict) -> str | None:
    """Return a line if every mini-batch was warm-up and no latency exists; else None."""
    if result["latencies_us"] or not result["samples"]:
        return None
    return (f"no latencies: all finished mini-batches are among the "
            f"{result['options']['warmup']:,} warm-up mini-batches; use a smaller --warmup")


def cell(value: object) -> str:
    """Return ``value`` as a table shows it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:,.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def shortened(checksum: str | None) -> str | None:
    """Return the first digits of a checksum, or None."""
    return checksum and f"{checksum[:16]}..."


def table(result: dict) -> Table:
    """Return the summary table of a run."""
    shown = Table(title=f"EmberNIC run: {result['model']['name']} on {result['nodes']} x "
                        f"{result['config']['name']}, {result['engine'] or result['fidelity']}",
                  title_justify="left")
    shown.add_column("quantity")
    shown.add_column("value", justify="right")
    shown.add_column("unit")

    def row(what: str, value: object, unit: str = "") -> None:
        shown.add_row(what, cell(value), unit)

    cache, dedupe = result["local_cache"] or {}, result["dedupe"] or {}
    row("samples", result["samples"])
    row("lookups", result["lookups"])
    batching = result["batching"]
    row("mini-batches formed by", batching["algorithm"])
    row("samples per window", batching["window"])
    row("unique keys per mini-batch", batching["unique_keys"])
    row("similarity per mini-batch", batching["similarity"])
    row("bit-identical to the numpy model", result["bit_identical"])
    row("simulated time", result["simulated_seconds"] * 1e6, "us")
    row("samples per simulated second",
        ratio(result["samples"], result["simulated_seconds"] * 1e6), "million")
    for name in ("p50", "p99", "max"):
        row(f"mini-batch latency {name}", result["latency_us"][name],
            "us" if cold(result) is None else "warm-up only")
    row("dedupe: requests", dedupe.get("requests"))
    row("dedupe: unique keys", dedupe.get("unique"))
    row("dedupe: retired early", dedupe.get("retired_early"))
    row("local cache: accesses", cache.get("accesses"))
    for name, label in HIT_RATES.items():
        row(label, cache.get(name))
    row("local cache: conflict misses", cache.get("conflict_misses"))
    remote = result["remote_cache"] or {}
    row("remote cache: hit rate per foreign lookup", remote.get("hit_rate"))
    row("lookups saved on the network", result["network"]["saved_lookups"])
    for stall in (result["stalls"] or {"by_cause": []})["by_cause"]:
        row(f"node {stall['node']}: {stall['means']}", stall["cycles"], "cycles")
    row("rows fetched from the GPU", result["gpu"]["rows"])
    row("gathers on the GPU", result["gpu"]["launches"])
    done = result["interaction"]
    if bags := result["bags"]:
        row("bags pooled for other nodes", bags["foreign"])
        row("own bags pooled by the GPU", bags["own"])
    for label, value in repeat_rows(result["repeats"]):
        row(label, value)
    row("interaction on the NIC", done and f"{done['mode']}{', itself' * done['itself']}")
    row("values per result", done and done["width"])
    row("network packets", result["network"]["packets"])
    row("network bytes", result["network"]["bytes"], "B")
    row("PCIe bytes to and from the NIC",
        result["pcie"]["to_nic_bytes"] + result["pcie"]["from_nic_bytes"], "B")
    row("node-cycles run", result["node_cycles"]["run"])
    row("node-cycles skipped", result["node_cycles"]["skipped"])
    row("wall time", result["wall_seconds"], "s")
    row("node-cycles run per second", result["node_cycles_per_second"])
    row("CPU time, total", result["cpu_seconds"]["total"], "s")
    row("CPU time of the NICs", result["cpu_seconds"]["nics"], "s")
    row("CPU time of the hosts", result["cpu_seconds"]["hosts"], "s")
    row("CPU time of making mini-batches", result["cpu_seconds"]["inputs"], "s")
    row("CPU time of checks and predictions", result["cpu_seconds"]["checks"], "s")
    row("predictions SHA-256", shortened(result["predictions_sha256"]))
    return shown
