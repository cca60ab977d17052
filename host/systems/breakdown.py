"""Breakdown of a step's time: each microsecond of its critical path belongs to one phase."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from host.systems.schedule import Schedule
from host.systems.stage import PHASES as STAGE_PHASES
from host.systems.stage import Step

__all__ = ["PHASES", "Breakdown", "breakdown"]

PHASES = (*STAGE_PHASES, "wait")


@dataclass(frozen=True)
class Breakdown:
    """The critical path of a step.

    Members
    -------
    phases: microseconds of each of :data:`PHASES`; their sum is the time from release to finish.
    path: (stage, its number, microseconds that it waited for a resource), first to last.
    """

    phases: dict[str, float]
    path: list[tuple[int, float]]


def breakdown(step: Step, times: Schedule, number: int) -> Breakdown:
    """Follow step ``number`` of ``times`` back from its last stage to its release.

    Of a stage's predecessors, the one that ended last is on the path (in a tie, the first). Time
    that a stage of the path waited for a resource counts as ``wait``, whether another step or
    another stage of this one held it. Overhead is what is left of the path's overhead when kernels
    of the step that run on the GPU meanwhile are taken out: where calls take longer than kernels,
    calls make the path, and the kernels between them are work all the same.
    """
    phases = dict.fromkeys(PHASES, 0.0)
    path: list[tuple[int, float]] = []
    end = times.end[number]
    at = int(np.argmax(end)) if len(end) else None
    kernels = sorted((float(times.start[number][n]), float(end[n]), stage.phase)
                     for n, stage in enumerate(step.stages)
                     if "gpu" in stage.resources and stage.phase != "overhead")
    while at is not None:
        stage = step.stages[at]
        waited = float(times.start[number][at] - times.ready[number][at])
        begin, over = float(times.start[number][at]), float(end[at])
        phases[stage.phase] += over - begin
        if stage.phase == "overhead":
            for phase, us in _within(kernels, begin, over):
                phases["overhead"] -= us
                phases[phase] += us
        phases["wait"] += waited
        path.append((at, waited))
        at = max(stage.after, key=lambda other: (end[other], -other), default=None)
    return Breakdown(phases, path[::-1])


def _within(kernels: Sequence[tuple[float, float, str]], begin: float,
            over: float) -> Iterator[tuple[str, float]]:
    """Yield phases and times of kernels, sorted by start, between two times; each time once."""
    for start, end, phase in kernels:
        if start >= over:
            return
        if end > begin:
            first, begin = max(start, begin), min(end, over)
            if begin > first:
                yield phase, begin - first
