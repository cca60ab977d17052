"""Rows of the results page as plain values: times, ratios, and the ratio after each change."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sim.evaluation.compared import METRICS
from sim.evaluation.store import Results
from sim.experiments.results.cases import BASE, COMPARED, FULL, OWN, Case, Measured
from sim.experiments.results.changes import FAIR
from sim.page.rows import Row

__all__ = ["csv_rows", "place_of", "row_of_case"]

_METRICS = {"interval_us": "us", "service_us": "us", "bottleneck_us": "us",
            "network_bytes_per_sample": "B", "gpu_memory_bytes": "B"}
"""Metrics of a system in the CSV file, with their units."""


PERCENTILES = {"low": 5, "median": 50, "high": 95}
"""Percentiles of the ratios over uncertain constants, by name."""


def place_of(row: Mapping) -> str:
    """Return a row's workload, mini-batch and cluster in words."""
    return f"{row['workload']}, {row['mini_batch']:,} samples, {row['cluster']}"


def row_of_case(case: Case, results: Results) -> dict:
    """Return a row.

    Returns
    -------
    ``workload``, ``cluster``, ``nodes``, ``mini_batch``, ``profile``, ``fidelity``, ``measured``
    and ``warmup`` (mini-batches), ``sampled`` (samples of the mini-batches that NICs run), ``why``
    (reason why the row, or EN's ratio, is missing), ``source``, ``notes``;

    ``samples_per_node``; ``keys`` and ``bags`` of a sample, ``foreign_bags`` and ``foreign_rows``
    (distinct) of a mini-batch, ``bags_per_row``: foreign bags over distinct foreign rows of a
    share;

    ``systems``: rows of :func:`sim.evaluation.compared.row_of` by name; ``ratios``: times as fast
    as the baseline, by system;

    ``spread``: by system, None if not measured: ``low``, ``median`` and ``high``, percentiles of
    the ratio over uncertain constants; ``above``, share of the draws above 1; ``ends``, ratios at
    the least and largest value of each constant; ``held``, constants without their effect on the
    NICs' own times;

    ``changes``: for each change ``change``, ``kind``, ``factor`` (of the checks, or None),
    ``base_us``, ``own_us``, ``ratio`` (EN over the baseline, both with the change), ``why``;
    ``largest``: the fair change that moves the ratio most.
    """
    row = {"workload": case.workload, "cluster": case.cluster, "nodes": case.nodes,
           "mini_batch": case.mini_batch, "profile": case.software, "fidelity": case.fidelity,
           "measured": case.measured, "warmup": case.warmup, "sampled": case.sampled,
           "why": case.why, "source": None, "notes": [],
           "samples_per_node": case.mini_batch / case.nodes}
    found = {each.system: _metrics(each, results) for each in case.systems}
    counts = next((each["counts"] for each in found.values() if "counts" in each), None)
    row |= counts or dict.fromkeys(("keys", "bags", "foreign_bags", "foreign_rows"))
    row["bags_per_row"] = _over(row["foreign_bags"], row["foreign_rows"])
    for each in found.values():
        row["source"] = each.pop("source", row["source"])
        row["notes"] = list(dict.fromkeys([*row["notes"], *each.pop("notes", [])]))
        each.pop("counts", None)
    base = found[BASE]["interval_us"]
    ratios = {name: _over(base, found[name]["interval_us"]) for name in (FULL, OWN)}
    row |= {"systems": found, "ratios": ratios,
            "spread": {name: ratio and _spread(case, name, results)
                       for name, ratio in ratios.items()},
            "changes": [] if case.why else list(_changes(case, results))}
    if row["why"] is None and row["ratios"][OWN] is None:
        row["why"] = "; ".join(f"{name}: {each['why']}" for name, each in found.items()
                               if each["why"] and name in (BASE, OWN))
    row["largest"] = _largest(row["changes"], row["ratios"][OWN])
    return row


def _metrics(task: Measured, results: Results) -> dict:
    """Return the row of a system; a failed one has a reason."""
    outcome = results.get(task)
    if outcome is not None and outcome.metrics is not None:
        return dict(outcome.metrics)
    return {"system": task.system, **dict.fromkeys(METRICS),
            "why": "not measured" if outcome is None else outcome.error}


def _spread(case: Case, name: str, results: Results) -> dict | None:
    """Return a system's ratios over uncertain constants, or None if they were not measured."""
    outcome = results.get(case.spread)
    if outcome is None or outcome.metrics is None or name not in outcome.metrics["draws"]:
        return None
    draws = outcome.metrics["draws"][name]
    return {**{each: float(np.percentile(draws, share)) for each, share in PERCENTILES.items()},
            "above": float(np.mean(np.array(draws) > 1)),
            **{each: outcome.metrics[each][name] for each in ("ends", "held")}}


def _changes(case: Case, results: Results) -> Iterator[dict]:
    for change, *both in case.changed:
        base, own = (_metrics(each, results) for each in both)
        yield {"change": change.name, "kind": change.kind, "factor": change.factor,
               "base_us": base["interval_us"], "own_us": own["interval_us"],
               "ratio": _over(base["interval_us"], own["interval_us"]),
               "why": base["why"] or own["why"]}


def _largest(changes: Sequence[dict], ratio: float | None) -> dict | None:
    """Return the fair change whose ratio differs most from ``ratio``, as a factor."""
    if ratio is None:
        return None
    return max((each for each in changes if each["ratio"] and each["kind"] == FAIR), default=None,
               key=lambda each: max(each["ratio"] / ratio, ratio / each["ratio"]))


def _over(one: float | None, other: float | None) -> float | None:
    return one / other if one and other else None


def csv_rows(rows: Sequence[Mapping]) -> list[Row]:
    """Return the values of rows for a CSV file."""
    return [Row(**{name: row[name] for name in ("workload", "cluster", "mini_batch", "profile",
                                                "fidelity")},
                system=system, metric=metric, value=value, low=low, high=high, unit=unit)
            for row in rows for system, metric, value, low, high, unit in _values(row)]


def _values(row: Mapping) -> Iterator[tuple]:
    """Yield system, metric, value, low, high and unit of each value of a row."""
    for name in COMPARED:
        for metric, unit in _METRICS.items():
            yield name, metric, row["systems"][name][metric], None, None, unit
    for name, ratio in row["ratios"].items():
        found = row["spread"][name] or {}
        yield name, f"speedup_over_{BASE}", ratio, found.get("low"), found.get("high"), "x"
        for constant, (low, high) in found.get("ends", {}).items():
            yield (name, f"speedup_over_{BASE} over {constant}", ratio, min(low, high),
                   max(low, high), "x")
    for each in row["changes"]:
        yield OWN, f"speedup_over_{BASE} with {each['change']}", each["ratio"], None, None, "x"
        for name, value in ((BASE, each["base_us"]), (OWN, each["own_us"])):
            yield name, f"interval_us with {each['change']}", value, None, None, "us"
    yield "", "foreign_bags_per_distinct_foreign_row", row["bags_per_row"], None, None, "x"
    yield "", "samples_per_node", row["samples_per_node"], None, None, "samples"
