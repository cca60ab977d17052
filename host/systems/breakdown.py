"""Breakdown of a step's time: each microsecond of its critical path belongs to one phase."""

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
    another stage of this one held it.
    """
    phases = dict.fromkeys(PHASES, 0.0)
    path: list[tuple[int, float]] = []
    end = times.end[number]
    at = int(np.argmax(end)) if len(end) else None
    while at is not None:
        stage = step.stages[at]
        waited = float(times.start[number][at] - times.ready[number][at])
        phases[stage.phase] += float(end[at] - times.start[number][at])
        phases["wait"] += waited
        path.append((at, waited))
        at = max(stage.after, key=lambda other: (end[other], -other), default=None)
    return Breakdown(phases, path[::-1])
