"""Counts of NICs, network, hosts and GPUs, for the reports of runs and of training."""

from collections.abc import Mapping, Sequence

import numpy as np

from sim.cluster.frame_faults import injected_rows
from sim.nic.stalls import stalls
from sim.run.simulation import Simulation

__all__ = ["block", "hardware", "percentiles", "ratio", "total"]


def block(counters: Mapping[str, int], name: str) -> dict[str, int]:
    """Return the counters of one block, without the block's name in the keys."""
    return {key.split(".", 1)[1]: value for key, value in counters.items()
            if key.split(".", 1)[0] == name}


def fbgemm_counts(requested: int, unique: int, misses: int) -> dict[str, int]:
    """Return the counts of a cache by FBGEMM's names: lookups, unique keys of a mini-batch, and
    these keys' misses."""
    return {"num_requested_indices": requested, "num_unique_indices": unique,
            "num_unique_misses": misses}


def ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def hardware(simulation: Simulation, counters: list[dict[str, int]] | None, wall: float) -> dict:
    """Return the counts of NICs, network, hosts and GPUs after ``wall`` seconds, as plain values.

    ``counters`` is None during the run, when counters cannot be read; values derived from them are
    then None.
    """
    nodes, exchange = simulation.cluster.nodes, simulation.cluster.exchange
    runtime, faults = simulation.runtime, simulation.faults
    sums = total(counters)
    cache, dedupe = block(sums, "local_cache"), block(sums, "dedupe")
    ran = sum(node.engine.cycles_run for node in nodes)
    return {
        "node_cycles": {"run": ran, "skipped": sum(node.engine.cycles_skipped for node in nodes),
                        "boot": simulation.boot_run},
        "node_cycles_per_second": ratio(ran - simulation.boot_run, wall),
        "stalls": stalls(counters) if counters and None not in sums.values() else None,
        "local_cache": None if not (sums and runtime.local_cache) else cache | {
            # A repeat within a mini-batch, which the dedupe table serves, counts as a hit.
            "hit_rate": ratio(dedupe["requests"] - cache.get("misses", 0), dedupe["requests"]),
            # Only lookups that entered the cache: one for each key per mini-batch and owner.
            "hit_rate_unique": ratio(cache["hits"], cache["accesses"]),
            **fbgemm_counts(dedupe["requests"], cache["accesses"], cache["misses"]),
        },
        "dedupe": None if not (sums and runtime.dedupe) else dedupe,
        "network": {"packets": exchange.frames, "bytes": exchange.frame_bytes,
                    "lost": exchange.lost_frames, "queue_drops": exchange.full_frames},
        "faults": None if not faults.given else {
            "given": list(faults.given), "seed": faults.seed,
            "injected": injected_rows(exchange.injected),
            **({"restarts": simulation.restarts} if faults.restarts else {})},
        "pcie": {"to_nic_bytes": sum(node.host_bytes["to_nic"] for node in nodes),
                 "from_nic_bytes": sum(node.host_bytes["from_nic"] for node in nodes)},
        "gpu": {"launches": sum(node.gpu.launches for node in nodes),
                "rows": sum(node.gpu.rows for node in nodes)},
        "given_up": simulation.explain_given_up(counters) if counters else None,
        "counters": counters,
    }


def total(counters: list[dict] | None) -> dict:
    """Return the sums over nodes; None for a counter that the model does not have."""
    if not counters:
        return {}
    return {name: None if value is None else sum(node[name] for node in counters)
            for name, value in counters[0].items()}


def percentiles(values: Sequence[float]) -> dict[str, float | None]:
    """Return the median, 99th percentile and maximum of ``values``; None if there are none."""
    return {name: float(np.percentile(values, part)) if values else None
            for name, part in (("p50", 50), ("p99", 99), ("max", 100))}
