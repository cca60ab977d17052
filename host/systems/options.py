"""Options of a step, common to all systems."""

from dataclasses import dataclass

__all__ = ["COPIED_ROWS", "StepOptions"]

COPIED_ROWS = (0, 100, 1_000, 10_000, 100_000, 1_000_000)
"""Tables of at most so many rows may be copied to every node; 0 for none."""


@dataclass(frozen=True)
class StepOptions:
    """Members: ``training``, whether the step trains (SGD); ``all_reduce``, whether the MLPs'
    gradients are then summed over the nodes; ``buckets``, whether those of the top MLP are summed
    while those of the bottom MLP are computed; ``nccl``, whether GPUs sum gradients by NCCL where
    the software profile has another library."""

    training: bool = False
    all_reduce: bool = True
    buckets: bool = False
    nccl: bool = False
