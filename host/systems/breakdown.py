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
    """Critical path of a step.

    Members
    -------
    phases: microseconds of each of :data:`PHASES`; they add up to the time from release to finish.
    path: pairs of a stage's number and the microseconds that the stage waited for a resource, in
        order of time.
    """

    phases: dict[str, float]
    path: list[tuple[int, float]]


def breakdown(step: Step, times: Schedule, number: int) -> Breakdown:
    """Follow step ``number`` of ``times`` back from its last stage to its release.

    The predecessor that ends last is on the path; ties go to the lowest number. Waiting for a
    resource counts as ``wait``. Overhead on the path excludes the time in which kernels of the same
    step run on the GPU: that time counts as the phase of the kernel. If calls take longer than
    kernels, calls form the path but the kernels between them still count as work.
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
    """Yield the phase and duration of kernels, sorted by start, between two times; count overlaps
    once.
    """
    for start, end, phase in kernels:
        if start >= over:
            return
        if end > begin:
            first, begin = max(start, begin), min(end, over)
            if begin > first:
                yield phase, begin - first
