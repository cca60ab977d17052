"""The results as claims read them: metrics, speedups and their means over data sets."""

from collections.abc import Mapping
from typing import Any

from sim.experiments.points.setting import Setting
from sim.experiments.points.speedup import JUDGED, speedup
from sim.experiments.sweep.sweep import Results

__all__ = ["Book", "mean"]

def mean(values: Mapping[str, float | None]) -> float | None:
    """Return the mean, None where a value is missing: over fewer data sets it would be another
    figure."""
    found = [value for value in values.values() if value is not None]
    return sum(found) / len(found) if found and len(found) == len(values) else None


class Book:
    """Results under the names that claims use.

    Parameters
    ----------
    setting, results: the evaluation.
    software: profile that is charged, ``eager`` or ``tuned``.
    base: baseline of speedups.

    Members: the parameters; ``asked``: values that claims asked for and that are missing, with
    reasons.
    """

    def __init__(self, setting: Setting, results: Results, software: str = "eager",
                 base: str = "bl-paper"):
        self.setting, self.results = setting, results
        self.software, self.base = software, base
        self.asked: list[str] = []

    @property
    def graph(self) -> str:
        """The baseline with the graph algorithm."""
        return "ga" if self.base == "bl-paper" else f"{self.base}+ga"

    def value(self, metric: str, dataset: str, system: str, workload: str = "inference",
              **fields: Any) -> float | None:
        """Return a metric of a point, None where there is none."""
        point = self.setting.point(dataset, system, workload, self.software, **fields)
        value = self.results.value(point, metric)
        if value is None:
            outcome = self.results.get(point)
            if outcome is None:
                reason = "not part of this evaluation"
            elif outcome.metrics is None:
                reason = str(outcome.error)
            else:
                reason = outcome.metrics.get("why") or f"has no {metric}"
            self.asked.append(f"{point.label} on {dataset}: {reason}")
        return value

    def values(self, metric: str, system: str, workload: str = "inference",
               **fields: Any) -> dict[str, float | None]:
        """Return a metric of a system for each data set."""
        return {dataset: self.value(metric, dataset, system, workload, **fields)
                for dataset in self.setting.datasets}

    def speedups(self, system: str, workload: str = "inference", base: str | None = None,
                 metric: str | None = None, base_fields: dict | None = None,
                 **fields: Any) -> dict[str, float | None]:
        """Return how many times faster than the baseline a system is, for each data set.

        ``fields`` are those of the system's point, such as the size of a cache; ``base_fields``,
        by default none, of the baseline's. Of inference the time per mini-batch in steady state
        counts, of training samples per second, unless ``metric`` is another (all but
        ``samples_per_second`` are times).
        """
        metric = metric or JUDGED[workload]
        found: dict[str, float | None] = {}
        for dataset in self.setting.datasets:
            own = self.value(metric, dataset, system, workload, **fields)
            other = self.value(metric, dataset, base or self.base, workload, **base_fields or {})
            found[dataset] = speedup(metric, own, other)
        return found

    def share(self, system: str, phases: tuple[str, ...],
              workload: str = "inference") -> dict[str, float | None]:
        """Return which part of a mini-batch served alone some phases take, for each data set."""
        found: dict[str, float | None] = {}
        for dataset in self.setting.datasets:
            parts = [self.value(f"phases_us.{phase}", dataset, system, workload)
                     for phase in phases]
            whole = self.value("service_us", dataset, system, workload)
            known = [part for part in parts if part is not None]
            found[dataset] = sum(known) / whole if whole and len(known) == len(parts) else None
        return found

    def largest(self, system: str, workload: str = "inference") -> str:
        """Return in words which phase and which resource of a system take most time."""
        said = []
        for dataset in self.setting.datasets:
            outcome = self.results.get(
                self.setting.point(dataset, system, workload, self.software))
            if not outcome or not outcome.metrics or not outcome.metrics.get("phases_us"):
                continue
            phases, busy = (outcome.metrics[name] for name in ("phases_us", "busy_us"))
            phase = max(phases, key=phases.__getitem__)
            part = phases[phase] / (outcome.metrics["service_us"] or 1)
            text = f"{dataset}: {phase.replace('_', ' ')} {part:.0%}"
            if busy:
                resource = max(busy, key=busy.__getitem__)
                text += f", {resource} busy {busy[resource]:.0f} us"
            said.append(text)
        return "; ".join(said)
