"""Options of a step, common to all systems."""

from dataclasses import dataclass

__all__ = ["COPIED_ROWS", "StepOptions"]

COPIED_ROWS = (0, 100, 1_000, 10_000, 100_000, 1_000_000)
"""Limits on the rows of tables that are copied to every node; 0 copies no table."""


@dataclass(frozen=True)
class StepOptions:
    """Options of a step.

    Members
    -------
    training: whether the step trains (SGD).
    all_reduce: whether training sums the gradients of the MLPs over the nodes.
    buckets: whether the all-reduce of the top MLP overlaps the backward pass of the bottom MLP.
    nccl: whether GPUs all-reduce by NCCL even if the software profile has another library.
    """

    training: bool = False
    all_reduce: bool = True
    buckets: bool = False
    nccl: bool = False
