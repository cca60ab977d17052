"""Breakdown of a step's time: each microsecond of its longest chain belongs to one phase."""

from collections.abc import Iterator, Sequence

from host.systems.charge import earliest_ends
from host.systems.schedule import passage_of
from host.systems.stage import PHASES as STAGE_PHASES
from host.systems.stage import Step

__all__ = ["PHASES", "breakdown"]

PHASES = (*STAGE_PHASES, "wait")


def breakdown(step: Step) -> dict[str, float]:
    """Return the microseconds of each of :data:`PHASES`; they add up to the length of a step alone.

    The stages of the longest chain count as their phases; ties go to the predecessor with the
    lowest number. The rest of the length is ``wait``: parallel chains wait for a resource. Overhead
    of the chain excludes the time in which kernels run on the GPU: that time counts as the phase of
    the kernel. If calls take longer than kernels, calls form the chain but the kernels between them
    still count as work.
    """
    ends, stages = earliest_ends(step), step.stages
    phases: dict[str, float] = dict.fromkeys(PHASES, 0.0)
    kernels = sorted((end - stage.us, end, stage.phase) for end, stage in zip(ends, stages)
                     if "gpu" in stage.resources and stage.phase != "overhead")
    longest = max(ends, default=0.0)
    phases["wait"] = passage_of(step).alone_us - longest
    at = ends.index(longest) if ends else None
    while at is not None:
        stage = stages[at]
        phases[stage.phase] += stage.us
        if stage.phase == "overhead":
            for phase, us in _within(kernels, ends[at] - stage.us, ends[at]):
                phases["overhead"] -= us
                phases[phase] += us
        at = max(stage.after, key=lambda other: (ends[other], -other), default=None)
    return phases


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
