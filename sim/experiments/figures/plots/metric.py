"""Metrics of a plot: a value of a point, or the ratio of it to a baseline's."""

from dataclasses import dataclass

from sim.evaluation.measure import speedup
from sim.evaluation.store import Results
from sim.experiments.figures.estimate import Estimate, combined, estimated
from sim.experiments.figures.plots.entry import Entry

__all__ = ["Metric", "estimate_of", "speedups", "value_of"]


@dataclass(frozen=True)
class Metric:
    """What is taken from a point.

    Members
    -------
    name: in the CSV file. path: in the metrics of a point, such as ``local_cache.hit_rate``.
    unit: of the value.
    base: name of the baseline that the value is a speedup over; None for the value itself.
    """

    name: str
    path: str
    unit: str
    base: str | None = None


def estimate_of(results: Results, entry: Entry, metric: Metric) -> Estimate | None:
    """Return a metric at an entry over its seeds, None where a point of it has none."""
    own = estimated(results, entry.point, metric.path, entry.seeds)
    if metric.base is None:
        return own
    base = estimated(results, dict(entry.bases)[metric.base], metric.path, entry.seeds)
    return combined(lambda mine, other: speedup(metric.path, mine, other), own, base)


def value_of(results: Results, entry: Entry, metric: Metric) -> float | None:
    """Return the mean of :func:`estimate_of`, None where there is none."""
    found = estimate_of(results, entry, metric)
    return found and found.value


def speedups(workload: str) -> tuple[Metric, ...]:
    """Return the metrics of a speedup.

    First the one over the paper's kind of baseline, which is drawn and judged, then the one over
    the tuned baseline, then the values themselves.
    """
    if workload == "training":
        return (Metric("throughput_speedup_vs_bl-paper", "samples_per_second", "x", "bl-paper"),
                Metric("throughput_speedup_vs_bl-tuned", "samples_per_second", "x", "bl-tuned"),
                Metric("throughput_speedup_without_all_reduce_vs_bl-paper",
                       "without_all_reduce.samples_per_second", "x", "bl-paper"),
                Metric("samples_per_second", "samples_per_second", "samples/s"))
    return (Metric("interval_speedup_vs_bl-paper", "interval_us", "x", "bl-paper"),
            Metric("interval_speedup_vs_bl-tuned", "interval_us", "x", "bl-tuned"),
            Metric("service_speedup_vs_bl-paper", "service_us", "x", "bl-paper"),
            Metric("service_speedup_vs_bl-tuned", "service_us", "x", "bl-tuned"),
            Metric("interval_us", "interval_us", "us"), Metric("service_us", "service_us", "us"))
