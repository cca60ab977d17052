"""All comparisons with published measurements."""

from collections.abc import Callable
from functools import cache

from sim.experiments.checks import (
    batching,
    flattening,
    h100_kernels,
    network_drop,
    v100_collectives,
    v100_inference,
    v100_kernels,
    v100_step,
    whole_steps,
)
from sim.experiments.checks.check import Comparison

__all__ = ["comparisons"]

_EVERY: tuple[Callable[[], Comparison], ...] = (
    v100_step.comparison, v100_collectives.comparison, v100_kernels.comparison,
    v100_inference.comparison, h100_kernels.comparison, flattening.comparison,
    flattening.comparison_v3_1, network_drop.comparison, network_drop.comparison_readme,
    whole_steps.comparison, batching.comparison)


@cache
def comparisons() -> tuple[Comparison, ...]:
    """Return every comparison, the worst miss first; the result is cached.

    Comparisons within their bounds follow, then comparisons without a bound.
    """
    return tuple(sorted((make() for make in _EVERY), key=lambda each: (
        each.good is None, each.good is True, -each.worst)))
