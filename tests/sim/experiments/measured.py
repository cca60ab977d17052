"""Made-up metrics of points, by rules that tests use. Importable by other processes."""

from host.systems import PHASES
from sim.evaluation.point import Point

BASE_US = {"cpu-mpi": 4000.0, "bl-paper": 2000.0, "bl-tuned": 1000.0, "all-on-nic": 5000.0}
GAINS = {"lc": 0.98, "rc": 0.7, "sc": 0.99}


def told(point: Point) -> dict:
    """Return metrics: each part of a SmartNIC, and the graph algorithm, multiplies the time."""
    parts = point.kind.name.split("+")
    us = BASE_US.get(point.kind.name, 1600.0)
    for part in parts:
        us *= GAINS.get(part, 1.0)
    if point.workload.batching == "graph":
        us *= 0.8
    us *= point.workload.samples / 128 * (4 / point.cluster.nodes) ** 0.5
    for name, factor in point.cluster.scaled:
        if name.endswith("launch_us") and point.kind.name != "bl-paper":
            us *= factor ** 0.5
    training = point.workload.training
    # Network bytes behind a remote cache, and GPU reads behind caches.
    sent = us * (0.5 if "rc" in parts else 1)
    rows = None if point.kind.name in BASE_US else 1000 * us / 1600
    phases = {phase: us / 8 for phase in PHASES if phase != "wait"} | {"wait": 0.0}

    def cache(share: float | None) -> dict:
        # A larger remote cache leaves fewer popular keys for the local cache.
        rate = 0.3 + (share or 0) - (point.system.remote_cache or 0) / 10
        return {"rows": int(1e4 * (share or 0)), "hit_rate": rate, "hit_rate_unique": rate / 2,
                "hits": 1, "accesses": 2}

    return {
        "applicable": True, "why": None, "notes": ["made up"], "source": "generator",
        "service_us": us, "interval_us": us if training else us / 2,
        "samples_per_second": point.workload.samples / us * 1e6, "phases_us": phases,
        "busy_us": {"gpu": us / 3, "gpu_memory": us / 4},
        "without_all_reduce": {"samples_per_second": point.workload.samples / us * 1.1e6},
        "nic_us": {"gathered": rows} if rows else None,
        "local_cache": cache(point.system.local_cache) if "lc" in parts else None,
        "remote_cache": cache(point.system.remote_cache) if "rc" in parts else None,
        "saved_lookups": int(1000 * (point.system.remote_cache or 0)) if "rc" in parts else None,
        "traffic": {kind: {"bytes": sent * point.cluster.nodes, "packets": 1}
                    for kind in ("lookups", "vectors", "total")} | (
            {"all_reduce": {"bytes": 1.0, "packets": 1}} if training else {}),
        "updates": {"rows": 1000.0,
                    "misses": max(0.0, 1000.0 - 4e4 * (point.system.local_cache or 0))}
        if training and "lc" in parts else None,
        "unique_keys": 800.0 if point.workload.batching == "graph" else 1000.0,
        "accesses": 3328.0}


def wavering(point: Point) -> dict:
    """Return `told` of a point, 1 % slower with each further seed, the full system 2 %."""
    slower = 1 + 0.01 * (point.workload.seed - 1) * (2 if point.label == "FS" else 1)
    metrics = told(point)
    return metrics | {name: metrics[name] * slower for name in ("service_us", "interval_us")} | {
        "samples_per_second": metrics["samples_per_second"] / slower}


def failing(point: Point) -> dict:
    """Raise an exception for the full system."""
    if point.label == "FS":
        raise RuntimeError("the full system is <away>")
    return told(point)
