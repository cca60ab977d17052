"""What the finished mini-batches of a run came to, in the order of the input."""

import hashlib
from collections.abc import Callable
from dataclasses import asdict

import numpy as np

from host.timing.clock import CYCLE_NS
from sim.node.step import Step, StepResult
from sim.run.reorder import InOrder
from sim.run.similarity import Alike

__all__ = ["Tally"]


class Tally:
    """Sums over finished mini-batches, which may be finished in any order.

    Parameters
    ----------
    first: number of the run's first sample in the input.
    alike: is told of the mini-batches.

    Members
    -------
    samples, lookups, verdicts: of the finished mini-batches.
    last_result: host cycle of the last result; 0 while there is none.
    sink: is given the predictions (float32 ``[n]``) in the order of the samples.
    """

    def __init__(self, alike: Alike, first: int = 0):
        self.alike = alike
        self.samples = 0
        self.lookups = 0
        self.verdicts = {"equal": 0, "different": 0, "refused": 0}
        self.last_result = 0.0
        self.sink: Callable[[np.ndarray], None] = lambda predictions: None
        self._latencies: dict[int, float] = {}
        self._predictions = InOrder(first)
        self._digest = hashlib.sha256()

    @property
    def gap(self) -> bool:
        """Whether a sample was finished before one that comes earlier in the input."""
        return len(self._predictions.held) > 0

    @property
    def next_sample(self) -> int:
        """Number of the first sample of the input that is not finished."""
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
        """Take a finished mini-batch with its verdict and predictions (float32 ``[n]``)."""
        self.samples += len(step.samples)
        self.lookups += len(step.samples.rows)
        for name, value in asdict(verdict).items():
            self.verdicts[name] += value
        self.last_result = max(self.last_result, step.finished)
        self._latencies[step.number] = (step.finished - step.started) * CYCLE_NS / 1000
        if step.batch is not None:
            self.alike.add(step.number, step.batch)
        ready = self._predictions.add(step.numbers, predictions)
        if len(ready):
            self._digest.update(ready.tobytes())
            self.sink(ready)
