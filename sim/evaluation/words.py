"""Points and tasks in words."""

from sim.evaluation.point import Point
from sim.evaluation.task import Task

__all__ = ["in_words"]


def in_words(point: Point | Task, seed: int | None = None) -> str:
    """Return what is measured in a line, without what most points have in common, such as the
    ``seed``."""
    if isinstance(point, Task):
        return point.in_words()
    caches = [f"{name} {value}" for name, value in (
        ("local cache", point.local_cache), ("remote cache", point.remote_cache)) if value]
    scaled = [f"{name} x{factor:g}" for name, factor in point.scaled]
    return ", ".join([
        point.label, point.dataset, point.workload, f"{point.nodes} nodes",
        f"mini-batch {point.samples}", point.software, point.fidelity, *caches, *scaled,
        *([] if seed in (None, point.seed) else [f"seed {point.seed}"]), *point.settings,
        *point.en])
