"""Speedups: which metric of a point is compared, and how."""

__all__ = ["JUDGED", "speedup"]

JUDGED = {"inference": "interval_us", "training": "samples_per_second"}
"""Metric by workload: time per mini-batch in steady state, and a rate."""


def speedup(metric: str, own: float | None, base: float | None) -> float | None:
    """Return how many times faster ``own`` is than ``base``, None where either is missing or 0.

    ``metric``: of both; all but ``samples_per_second`` are times.
    """
    if not own or not base:
        return None
    return own / base if metric.endswith("samples_per_second") else base / own
