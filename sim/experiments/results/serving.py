"""The serving part of the results page: load within a p99, and latencies by load."""

from collections.abc import Iterator, Mapping, Sequence
from math import log10

from sim.evaluation.compared import choices
from sim.experiments.results.cases import COMPARED, Case
from sim.experiments.results.rows import place_of
from sim.page.content import Column, Section, Table, Text
from sim.page.rows import Row

__all__ = ["BOUNDS_US", "csv_rows", "method", "row_of_served", "section_of", "served_of"]

WORKLOADS = ("kaggle", "multi_hot", "ranking")
"""Workloads that are served, each with its first mini-batch on its first cluster."""

BOUNDS_US = (100.0, 1000.0, 60_000.0)
"""Bounds on the p99. The last is that of MLPerf inference for DLRM-DCNv2 in the server scenario."""

_LATENCIES = ("p50_us", "p99_us", "p99_9_us")


def served_of(cases: Sequence[Case]) -> list[Case]:
    """Return the rows that are served: those of `WORKLOADS`, or the first of other workloads."""
    first = [case for case in cases if case.first and case.why is None]
    return [case for case in first if case.workload in WORKLOADS] or first[:1]


def row_of_served(case: Case, served: Mapping) -> dict:
    """Return the served row: ``workload``, ``cluster``, ``nodes``, ``mini_batch`` (samples of the
    page's row), ``profile``, ``fidelity``, ``sizes`` (mini-batches that a system chooses from),
    ``candidates`` (samples of a request), and ``systems``, ``loads``, ``slos`` and ``notes`` of a
    result of ``sim serve``."""
    options = served["options"]
    return {"workload": case.workload, "cluster": case.cluster, "nodes": case.nodes,
            "mini_batch": case.mini_batch, "profile": case.software, "fidelity": case.fidelity,
            **{name: options[name] for name in ("sizes", "candidates", "requests")},
            **{name: served[name] for name in ("systems", "loads", "slos", "notes")}}


def section_of(rows: Sequence[Mapping]) -> Section:
    """Return the section: the load within each bound, and the latencies at powers of ten."""
    if not rows:
        return Section("Serving", [Text([
            "Not measured: --demo leaves serving out, or no row can be measured."])])
    return Section("Serving", [_bounds(rows), _loads(rows)])


def _bounds(rows: Sequence[Mapping]) -> Table:
    return Table(
        ["workload", "cluster", Column("samples of a request", about="drawn with equal "
                                       "probability from the model's requests"),
         Column("p99 within, us", ",.0f"),
         *(Column(f"{name} requests/s", ",.0f") for name in COMPARED)],
        [[row["workload"], row["cluster"], _samples(row), bound,
          *(_within(row, name, bound) for name in COMPARED)]
         for row in rows for bound in dict.fromkeys(each["slo_us"] for each in row["slos"])],
        "Highest load of Poisson arrivals whose 99th percentile of latency, from a request's "
        "arrival to its last prediction, is within the bound; 0: below 1,000 requests per second; "
        "over: every tested load is within it. "
        "Requests of 100 to 700 samples within 60 ms are MLPerf's server scenario. Each system "
        "chooses its mini-batch and its timeout at each load.")


def _within(row: Mapping, system: str, bound: float) -> float | str | None:
    """Return the load of a system within a bound; a text if it serves every tested load."""
    found = next((each for each in row["slos"]
                  if (each["system"], each["slo_us"]) == (system, bound)), None)
    return found and (f"over {found['qps']:,.0f}" if found["more"] else found["qps"])


def _loads(rows: Sequence[Mapping]) -> Table:
    columns = [Column(f"{name} {each}", ",.0f") for name in COMPARED
               for each in ("p50", "p99", "p99.9")]
    found = []
    for row in rows:
        by = {(each["system"], each["qps"]): each for each in row["loads"]}
        for qps in dict.fromkeys(each["qps"] for each in row["loads"]):
            if log10(qps).is_integer():
                found.append([row["workload"], row["cluster"], qps, *(
                    by.get((name, qps), {}).get(each) for name in COMPARED
                    for each in _LATENCIES)])
    return Table(["workload", "cluster", Column("requests/s", ",.0f"), *columns], found,
                 "Latency of a request in us; n/a: the system cannot keep up. results.json and "
                 "results.csv contain more loads, and results.json the chosen mini-batches.")


def _samples(row: Mapping) -> str:
    least, most = min(row["candidates"]), max(row["candidates"])
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def method(rows: Sequence[Mapping]) -> list[str]:
    """Return sentences on how rows were served, and the options of the systems of each row."""
    sizes = "; ".join(f"{place_of(row)}: {' or '.join(f'{each:,}' for each in row['sizes'])}"
                      for row in rows)
    return [f"Serving: mini-batches that each system chooses from, in samples: {sizes}. At least "
            f"{rows[0]['requests']:,} requests are measured at each load. Each system has the "
            "placement and copies of tables of the search at the larger mini-batch, with one "
            "mini-batch per graph and at most 16 in flight. Its options follow.",
            *(f"Served {place_of(row)}: {'; '.join(choices(row['systems']))}." for row in rows)
            ] if rows else []


def csv_rows(rows: Sequence[Mapping]) -> list[Row]:
    """Return the values of served rows for a CSV file. A load above all tested loads has only a
    low end."""
    return [Row(**{name: row[name] for name in ("workload", "cluster", "mini_batch", "profile",
                                                "fidelity")},
                system=system, metric=metric, value=value, unit=unit, low=low)
            for row in rows for system, metric, value, unit, low in _values(row)]


def _values(row: Mapping) -> Iterator[tuple]:
    for each in row["slos"]:
        yield (each["system"], f"requests_per_second within p99 of {each['slo_us']:g} us",
               *((None, "requests/s", each["qps"]) if each["more"] else
                 (each["qps"], "requests/s", None)))
    for each in row["loads"]:
        for name in _LATENCIES:
            yield each["system"], f"{name} at {each['qps']:g} requests/s", each[name], "us", None
