"""What a training has measured, for its report."""

from collections.abc import Sequence
from dataclasses import dataclass

from host.model import Model
from rtl.config import NicConfig
from sim.job.settings import Runtime
from sim.training.options import TrainOptions

__all__ = ["Measurements"]


@dataclass(frozen=True)
class Measurements:
    """What a training has measured, at its end or while it goes on.

    Members
    -------
    options, config, runtime, model: of the training, and what they come to.
    nics: what NICs came to; empty without.
    complete: whether every step is done. interrupted: the signal that ended it, or None.
    first_step: steps that a checkpoint brought. losses, intervals, samples, lookups, batching: of
    the steps done since. wall: seconds.
    rows: rows written, and weights: hash of all weights; None while training goes on, as they take
    long to tell. predictions: hash of the predictions, None where there are none.
    """

    options: TrainOptions
    config: NicConfig
    runtime: Runtime
    model: Model
    nics: dict
    complete: bool
    interrupted: str | None
    first_step: int
    losses: Sequence[float]
    intervals: list[dict]
    samples: int
    lookups: int
    batching: dict
    wall: float
    rows: int | None
    weights: str | None
    predictions: str | None
