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
    """Measurements of a training, at its end or in progress.

    Members
    -------
    options: options of the training.
    config, runtime, model: derived from the options.
    nics: measurements of the NICs; empty without NICs.
    complete: True if every step is done.
    interrupted: signal that ended the training, or None.
    first_step: steps of the loaded checkpoint.
    pool: place that pools the bags of each table; empty if all pool at the requester.
    notes: lines on these places.
    losses, intervals, samples, lookups, batching: values of the steps since the checkpoint.
    wall: seconds.
    rows: number of written rows; None during the training, because counting takes long.
    weights: hash of all weights; None during the training, because hashing takes long.
    predictions: hash of the predictions; None without predictions.
    """

    options: TrainOptions
    config: NicConfig
    runtime: Runtime
    model: Model
    pool: Sequence[str]
    notes: Sequence[str]
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
