"""The results as claims read them: metrics, speedups and their means over data sets and seeds."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from sim.evaluation.measure import JUDGED, speedup
from sim.evaluation.point import Point
from sim.evaluation.setting import FULL_SYSTEMS, Setting
from sim.evaluation.store import Results
from sim.experiments.figures.estimate import Estimate, combined, estimated

__all__ = ["NIC", "Book", "Found"]

Found = Mapping[str, Estimate | None]
"""A value for each data set, or whatever else the names are; None where one is missing."""

NIC = "nic"
"""The SmartNIC as transport alone, which dedupes: what each technique is added to."""


class Book:
    """Results under the names that claims use.

    Parameters
    ----------
    setting, results: the evaluation.
    software: profile that is charged, ``eager`` or ``tuned``.
    base: baseline of speedups.
    alone: whether inference is judged on mini-batches served alone, not on those in steady state.

    Members: the parameters; ``asked``: values that claims asked for and that are missing, with
    reasons; ``timed``: whether a claim asked for a time of inference; ``full``: the full system of
    the paper.
    """

    def __init__(self, setting: Setting, results: Results, software: str = "eager",
                 base: str = "bl-paper", alone: bool = False):
        self.setting, self.results = setting, results
        self.software, self.base, self.alone = software, base, alone
        self.full = FULL_SYSTEMS[0]
        self.asked: list[str] = []
        self.timed = False

    @property
    def graph(self) -> str:
        """The baseline with the graph algorithm."""
        return "ga" if self.base == "bl-paper" else f"{self.base}+ga"

    def metric(self, workload: str) -> str:
        """Return the metric that a workload is judged on."""
        if workload == "training":
            return JUDGED[workload]
        self.timed = True
        return "service_us" if self.alone else JUDGED[workload]

    def value(self, metric: str, dataset: str, system: str, workload: str = "inference",
              **fields: Any) -> Estimate | None:
        """Return a metric of a point at all seeds that it was measured with, None where there is
        none. ``fields`` are those of the point, such as the size of a cache."""
        point = _point(self.setting, dataset, system, workload, self.software,
                       tuple(fields.items()))
        found = estimated(self.results, point, metric, self.setting.seeds)
        if found is None:
            outcome = self.results.get(point)
            if outcome is None:
                reason = "not part of this evaluation"
            elif outcome.metrics is None:
                reason = str(outcome.error)
            else:
                reason = outcome.metrics.get("why") or f"has no {metric}"
            self.asked.append(f"{point.label} on {dataset}: {reason}")
        return found

    def values(self, metric: str, system: str, workload: str = "inference",
               **fields: Any) -> dict[str, Estimate | None]:
        """Return a metric of a system for each data set."""
        return {dataset: self.value(metric, dataset, system, workload, **fields)
                for dataset in self.setting.datasets}

    def speedup(self, dataset: str, system: str, workload: str = "inference",
                base: str | None = None, metric: str | None = None,
                base_fields: Mapping | None = None, **fields: Any) -> Estimate | None:
        """Return how many times faster than the baseline a system is on a data set.

        ``fields`` are those of the system's point, ``base_fields``, by default none, of the
        baseline's. ``metric``: by default what the workload is judged on; all but
        ``samples_per_second`` are times.
        """
        metric = metric or self.metric(workload)
        own = self.value(metric, dataset, system, workload, **fields)
        other = self.value(metric, dataset, base or self.base, workload, **base_fields or {})
        return combined(lambda mine, its: speedup(metric, mine, its), own, other)

    def speedups(self, system: str, workload: str = "inference", base: str | None = None,
                 metric: str | None = None, base_fields: Mapping | None = None,
                 **fields: Any) -> dict[str, Estimate | None]:
        """Return :meth:`speedup` for each data set."""
        return {dataset: self.speedup(dataset, system, workload, base, metric, base_fields,
                                      **fields) for dataset in self.setting.datasets}

    def over_nic(self, system: str, workload: str = "inference") -> dict[str, Estimate | None]:
        """Return how many times faster than the NIC alone a system is, for each data set."""
        return self.speedups(system, workload, base=NIC)

    def phases(self, dataset: str, system: str, phases: tuple[str, ...],
               workload: str = "inference") -> Estimate | None:
        """Return the microseconds that some phases of a mini-batch served alone take together."""
        return combined(lambda *parts: sum(parts), *(
            self.value(f"phases_us.{phase}", dataset, system, workload) for phase in phases))

    def noise(self, metric: str, dataset: str, system: str, workload: str = "inference") -> float:
        """Return how much of a metric the seeds' standard deviation is, at the reference setting.

        0 with one seed, which shows none.
        """
        point = _point(self.setting, dataset, system, workload, self.software, ())
        found = estimated(self.results, point, metric, self.setting.seeds)
        return found.deviation / abs(found.value) if found and found.value else 0.0

    def each(self, function: Callable[[str], Estimate | None]) -> dict[str, Estimate | None]:
        """Return ``function`` of each data set."""
        return {dataset: function(dataset) for dataset in self.setting.datasets}

    def mostly(self, system: str, workload: str = "inference") -> str:
        """Return in words on what a system spends a mini-batch: the longest phase of one that is
        served alone, and the busiest resource."""
        said = []
        for dataset in self.setting.datasets:
            outcome = self.results.get(
                _point(self.setting, dataset, system, workload, self.software, ()))
            if not outcome or not outcome.metrics or not outcome.metrics.get("phases_us"):
                continue
            phases, busy = (outcome.metrics[name] for name in ("phases_us", "busy_us"))
            phase = max(phases, key=phases.__getitem__)
            part = phases[phase] / (outcome.metrics["service_us"] or 1)
            text = f"{dataset} {phase.replace('_', ' ')} {part:.0%}"
            if busy:
                resource = max(busy, key=busy.__getitem__)
                text += f" (busiest: {resource}, {busy[resource]:.0f} us)"
            said.append(text)
        return ", ".join(said) or "not measured"


@lru_cache(maxsize=4096)
def _point(setting: Setting, dataset: str, system: str, workload: str, software: str,
           fields: tuple) -> Point:
    return setting.point(dataset, system, workload, software, **dict(fields))
