"""In which order points are measured, and how much work each is."""

from collections.abc import Iterable

from sim.evaluation.point import Point
from sim.evaluation.systems import BASELINES, parts_of
from sim.evaluation.task import Task
from sim.evaluation.trace import trace_key

__all__ = ["effort", "in_turn"]


def in_turn(points: Iterable[Point | Task]) -> list[Point | Task]:
    """Return points in the order in which they are begun.

    First one RTL point for each NIC that has to be compiled, so that the NICs are compiled side by
    side. Then the longest points, so that none is left over at the end; those of one trace follow
    each other, since a process keeps only a few traces. Tasks come last, in the order given: they
    share runs of NICs with points.
    """
    given = list(points)
    tasks = [point for point in given if isinstance(point, Task)]
    ordered = sorted((point for point in given if isinstance(point, Point)), key=_turn)
    compiled = {_built(point): point for point in reversed(ordered) if point.fidelity == "rtl"}
    first = sorted(compiled.values(), key=_turn)
    return [*first, *(point for point in ordered if point not in first), *tasks]


def effort(point: Point | Task) -> float:
    """Return roughly how long a point takes: in samples that run through modelled NICs."""
    if isinstance(point, Task):
        return point.effort
    samples = point.samples * (point.warmup + point.measured)
    if point.system in BASELINES:
        return 0.05 * samples
    # One mini-batch under way, several, and with the interaction on the NIC.
    return samples * (2 if point.depths != (1,) else 1) * (25 if point.fidelity == "rtl" else 1)


def _turn(point: Point) -> tuple:
    of = trace_key(point)
    return (point.fidelity != "rtl", -(of.warmup + of.measured) * of.samples, repr(of),
            point.nodes)


def _built(point: Point) -> tuple[str, ...]:
    """Return what tells one compiled NIC of an evaluation from another."""
    return (point.dataset, point.workload) if "sc" in parts_of(point.system) else (point.dataset,)
