"""Tables of ``serve``: load within each bound, latencies by load, cost of a sample."""

from rich.table import Table

from sim.serving.setting import LADDER

__all__ = ["said_qps", "said_us", "serve_tables"]

_COSTS = (("gpu_us", "GPU us"), ("pcie_us", "PCIe us"), ("pcie_bytes", "PCIe bytes"),
          ("network_bytes", "network bytes"), ("cpu_us", "host thread us"), ("nic_us", "NIC us"))


def serve_tables(result: dict) -> list[Table]:
    """Return the tables of a result of :func:`sim.serving.serve.serve`."""
    systems = list(dict.fromkeys(row["system"] for row in result["loads"]))
    return [table for table in (_bounds(result, systems), _loads(result, systems),
                                _costs(result, systems)) if table.row_count]


def said_us(us: float) -> str:
    """Return a time in a suitable unit."""
    return f"{us:,.0f} us" if us < 1000 else f"{us / 1000:,.3g} ms"


def said_qps(qps: float) -> str:
    """Return a rate with three digits."""
    for unit, name in ((1e6, " M/s"), (1e3, " k/s")):
        if qps >= unit:
            return f"{qps / unit:.3g}{name}"
    return f"{qps:.3g} /s"


def _bounds(result: dict, systems: list[str]) -> Table:
    options = result["options"]
    table = Table(title=f"Requests per second within a p99, {_setting(options)}\n"
                        "and below: mini-batch, timeout")
    table.add_column("p99 within")
    for system in systems:
        table.add_column(system, justify="right")
    by = {(row["slo_us"], row["system"]): row for row in result["slos"]}
    for slo in dict.fromkeys(row["slo_us"] for row in result["slos"]):
        table.add_row(said_us(slo), *(_bound(by[slo, system]) for system in systems))
    return table


def _bound(row: dict) -> str:
    if not row["qps"]:
        return "none" if row["alone_us"] > row["slo_us"] else f"under {said_qps(LADDER[0])}"
    return f"{'over ' if row['more'] else ''}{said_qps(row['qps'])}\n{_choice(row)}"


def _choice(row: dict) -> str:
    """Return a mini-batch and a timeout in words."""
    formed = f"{row['mini_batch']:,}"
    if row["window"] > 1:
        formed = f"{row['window']}x{formed}"
    return f"{formed}, {said_us(row['timeout_us'])}" if row["timeout_us"] else formed


def _loads(result: dict, systems: list[str]) -> Table:
    table = Table(title="Latency of requests in us, p50/p99/p99.9")
    table.add_column("load", justify="right")
    for system in systems:
        table.add_column(system, justify="right")
    by = {(row["qps"], row["system"]): row for row in result["loads"]}
    for qps in dict.fromkeys(row["qps"] for row in result["loads"]):
        table.add_row(said_qps(qps), *(_latencies(by[qps, system]) for system in systems))
    return table


def _latencies(row: dict) -> str:
    if row["saturated"] is None:
        return "failed"
    if row["saturated"]:
        return "saturated"
    return "/".join(f"{row[name]:.0f}" for name in ("p50_us", "p99_us", "p99_9_us"))


def _costs(result: dict, systems: list[str]) -> Table:
    """Return the cost of a sample in full mini-batches of a size that all systems have."""
    rows = [row for row in result["mini_batches"] if not row["graph"]]
    common = [size for size in sorted({row["mini_batch"] for row in rows})
              if {row["system"] for row in rows if row["mini_batch"] == size} == set(systems)]
    size = min(common, key=lambda each: abs(each - 128), default=0)
    table = Table(title=f"Cost of a sample, in mini-batches of {size:,}")
    table.add_column("system")
    for _, name in _COSTS:
        table.add_column(name, justify="right")
    for row in rows:
        if row["mini_batch"] == size:
            table.add_row(row["system"], *(f"{row['per_sample'][cost]:,.3g}" if
                                           row["per_sample"][cost] < 1000 else
                                           f"{row['per_sample'][cost]:,.0f}" for cost, _ in _COSTS))
    return table


def _setting(options: dict) -> str:
    nodes = "1 node" if options["nodes"] == 1 else f"{options['nodes']} nodes"
    arrivals = "bursts" if options["arrivals"] == "bursts" else "Poisson"
    samples = options["candidates"]
    many = f", {min(samples)} to {max(samples)} samples each" * (max(samples) > 1)
    return f"{options['dataset']}, {nodes}, {options['software']} software, {arrivals}{many}"
