"""Checks of finished mini-batches, run on a background thread if the run has several threads."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from time import thread_time

import numpy as np

from host.dlrm.dlrm import Dlrm, divided, pooled_reference
from host.dlrm.interaction import ResultLayout
from host.model import Model
from host.samples import Samples
from sim.node.step import PooledOf, Step, StepResult

__all__ = ["CheckQueue", "check_refusals", "make_check"]

Check = Callable[[Step], tuple[StepResult, np.ndarray]]
"""Returns the verdict and the predictions (float32 ``[n]``) of a finished mini-batch."""
Take = Callable[[Step, StepResult, np.ndarray], None]


def make_check(dlrm: Dlrm, pooled: PooledOf, layout: ResultLayout | None,
               divides: bool = False) -> Check:
    """Return a function that checks answers and predicts from them; rejected samples give NaN.

    pooled: computes pooled vectors, if they are float32 on the wire.
    layout: layout of interaction results, if the NICs deliver them.
    divides: whether NICs make the means of a model whose tables differ, not hosts.
    """
    if dlrm.wire != "float32":
        pooled = partial(pooled_reference, wire=dlrm.wire, owner_tables=dlrm.owner_tables)
    dlrm.draw()  # loaded here, not in the first check

    def completed(samples: Samples, model: Model, seed: int) -> np.ndarray:
        return divided(model, pooled(samples, model, seed), samples.bag_lengths)

    def check(step: Step) -> tuple[StepResult, np.ndarray]:
        verdict = StepResult.judge(step, dlrm.model, dlrm.seed, completed if divides else pooled)
        if layout is None:
            predictions = dlrm.predict(step.samples.dense, step.answers if divides else divided(
                dlrm.model, step.answers, step.samples.bag_lengths))
        else:
            predictions = dlrm.top(layout.to_values(step.answers))
        predictions[step.status != 0] = np.nan
        return verdict, predictions

    return check


def check_refusals(step: Step) -> tuple[StepResult, np.ndarray]:
    """Return the verdict on a mini-batch without values: rejected samples only."""
    refused = int((step.status != 0).sum())
    return StepResult(0, 0, refused), np.full(len(step.samples), np.nan, np.float32)


class CheckQueue(AbstractContextManager):
    """Checks mini-batches in order and passes on each result.

    Parameters
    ----------
    check: checks a mini-batch that no longer changes.
    take: receives each result, on the thread of the check.
    background: whether to check on a background thread during simulation.
    max_pending: most waiting mini-batches; beyond it `add` waits for the oldest.

    Members: ``check``; ``seconds``, CPU time of ``check`` and ``take``.
    """

    def __init__(self, check: Check, take: Take, *, background: bool, max_pending: int):
        self.check, self._take, self._max_pending = check, take, max_pending
        self._pool = ThreadPoolExecutor(1) if background else None
        self._waiting: deque[Future[None]] = deque()
        self._failed = False
        self.seconds = 0.0

    def __exit__(self, *_) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def add(self, step: Step) -> None:
        """Check a mini-batch, now or in the background.

        Like `drain`, it re-raises an exception of ``check`` or ``take`` for this or an earlier
        mini-batch.
        """
        if self._pool is None:
            self._check(step)
            return
        self._waiting.append(self._pool.submit(self._check, step))
        self._wait(self._max_pending)

    def drain(self) -> None:
        """Wait until every mini-batch added has been checked and passed on."""
        self._wait(0)

    def _wait(self, pending: int) -> None:
        while self._waiting and (len(self._waiting) > pending or self._waiting[0].done()):
            self._waiting.popleft().result()

    def _check(self, step: Step) -> None:
        if self._failed:
            return  # an earlier result is missing; passing this one on would leave a gap
        self._failed = True
        began = thread_time()
        self._take(step, *self.check(step))
        self.seconds += thread_time() - began
        self._failed = False
