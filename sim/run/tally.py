"""Tally of a run's finished mini-batches, with predictions in the order of the input."""

import hashlib
from collections.abc import Callable
from dataclasses import asdict

import numpy as np

from host.timing.clock import CYCLE_NS
from sim.node.repeats import RepeatCounts
from sim.node.step import Step, StepResult
from sim.run.reorder import ReorderBuffer
from sim.run.similarity import SimilarityTally

__all__ = ["Tally"]


class Tally:
    """Sums over finished mini-batches, which may finish in any order.

    Parameters
    ----------
    first: number of the run's first sample in the input.
    similarity: tally to which the mini-batches are added too.

    Members
    -------
    samples, lookups, repeats, verdicts: of the finished mini-batches.
    last_result: host cycle of the last result; 0 before the first.
    sink: receives the predictions (float32 ``[n]``) in the order of the samples.
    """

    def __init__(self, similarity: SimilarityTally, first: int = 0):
        self.similarity = similarity
        self.samples = 0
        self.lookups = 0
        self.repeats = RepeatCounts()
        self.verdicts = {"equal": 0, "different": 0, "refused": 0}
        self.last_result = 0.0
        self.sink: Callable[[np.ndarray], None] = lambda predictions: None
        self._latencies: dict[int, float] = {}
        self._predictions = ReorderBuffer(first)
        self._digest = hashlib.sha256()

    @property
    def gap(self) -> bool:
        """Whether a sample has finished before one that comes earlier in the input."""
        return len(self._predictions.held) > 0

    @property
    def next_sample(self) -> int:
        """Number of the first unfinished sample of the input."""
        return self._predictions.next

    @property
    def latencies(self) -> list[float]:
        """Latency of each finished mini-batch in microseconds, in the order of the steps."""
        return [self._latencies[number] for number in sorted(self._latencies)]

    @property
    def sha256(self) -> str:
        """Hash of the predictions of the finished samples, in the order of the input."""
        digest = self._digest.copy()
        digest.update(self._predictions.held.tobytes())
        return digest.hexdigest()

    def add(self, step: Step, verdict: StepResult, predictions: np.ndarray) -> None:
        """Add a finished mini-batch with its verdict and predictions (float32 ``[n]``)."""
        self.samples += len(step.samples)
        self.lookups += len(step.samples.rows)
        if step.repeats is not None:
            self.repeats += step.repeats.counts(step.samples)
        for name, value in asdict(verdict).items():
            self.verdicts[name] += value
        self.last_result = max(self.last_result, step.finished)
        self._latencies[step.number] = (step.finished - step.started) * CYCLE_NS / 1000
        if step.batch is not None:
            self.similarity.add(step.number, step.batch)
        ready = self._predictions.add(step.numbers, predictions)
        if len(ready):
            self._digest.update(ready.tobytes())
            self.sink(ready)
