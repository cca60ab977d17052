"""Measurements of a training, for its report."""

from collections.abc import Sequence
from dataclasses import dataclass

from host.model import Model
from rtl.config import NicConfig
from sim.job.settings import Runtime
from sim.training.options import TrainOptions

__all__ = ["Measurements"]


@dataclass(frozen=True)
class Measurements:
    """Measurements of a training, at its end or while it goes on.

    Members
    -------
    options: of the training. config, runtime, model: derived from them.
    nics: measurements of the NICs; empty without NICs.
    complete: whether every step is done. interrupted: the signal that ended it, or None.
    first_step: steps already in the checkpoint. losses, intervals, samples, lookups, batching: of
    the steps done since. wall: seconds.
    rows: number of rows written. weights: hash of all weights. Both are None while training goes
    on, because they take long to compute. predictions: hash of the predictions, None if there are
    none.
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
