"""What the finished mini-batches of a run came to, in the order of the input."""

import hashlib
from collections.abc import Callable
from dataclasses import asdict

import numpy as np

from host.timing import CYCLE_NS
from sim.results import Step, StepResult

__all__ = ["Tally"]


class Tally:
    """Sums over finished mini-batches, which may be finished in any order.

    Parameters
    ----------
    first: number of the run's first sample in the input.

    Members
    -------
    samples, lookups, verdicts: of the finished mini-batches.
    last_result: host cycle of the last result; 0 while there is none.
    next_sample: every sample before it is finished, from ``first`` on.
    sink: is given the predictions (float32 ``[n]``) in the order of the samples.
    """

    def __init__(self, first: int = 0):
        self.samples = 0
        self.lookups = 0
        self.verdicts = {"equal": 0, "different": 0, "refused": 0}
        self.last_result = 0.0
        self.next_sample = first
        self.sink: Callable[[np.ndarray], None] = lambda predictions: None
        self._latencies: dict[int, float] = {}
        self._held: dict[int, np.ndarray] = {}
        self._digest = hashlib.sha256()

    @property
    def gap(self) -> bool:
        """Whether a mini-batch was finished before one that comes earlier in the input."""
        return bool(self._held)

    @property
    def latencies(self) -> list[float]:
        """Latency of each finished mini-batch in microseconds, in the order of the input."""
        return [self._latencies[number] for number in sorted(self._latencies)]

    @property
    def sha256(self) -> str:
        """Hash of the predictions of the finished mini-batches, in the order of the input."""
        digest = self._digest.copy()
        for first in sorted(self._held):
            digest.update(self._held[first].tobytes())
        return digest.hexdigest()

    def add(self, step: Step, verdict: StepResult, predictions: np.ndarray) -> None:
        """Take a finished mini-batch with its verdict and predictions (float32 ``[n]``)."""
        self.samples += len(step.samples)
        self.lookups += len(step.samples.rows)
        for name, value in asdict(verdict).items():
            self.verdicts[name] += value
        self.last_result = max(self.last_result, step.finished)
        self._latencies[step.number] = (step.finished - step.started) * CYCLE_NS / 1000
        self._held[step.first] = np.ascontiguousarray(predictions, "<f4")
        while (ready := self._held.pop(self.next_sample, None)) is not None:
            self._digest.update(ready.tobytes())
            self.sink(ready)
            self.next_sample += len(ready)
