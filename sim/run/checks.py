"""Checks of finished mini-batches and their predictions, beside the nodes where threads are."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from time import thread_time

import numpy as np

from host.dlrm.dlrm import Dlrm
from host.dlrm.interaction import ResultLayout
from sim.node.step import PooledOf, Step, StepResult

__all__ = ["Checks", "checker", "unchecked"]

Check = Callable[[Step], tuple[StepResult, np.ndarray]]
"""Verdict and predictions (float32 ``[n]``) of a finished mini-batch."""
Take = Callable[[Step, StepResult, np.ndarray], None]


def checker(dlrm: Dlrm, pooled: PooledOf, layout: ResultLayout | None) -> Check:
    """Return what judges answers and predicts from them; NaN for samples that were refused.

    ``pooled``: gives pooled vectors. ``layout``: of the interaction results, where the NICs answer
    with them.
    """
    dlrm.draw()  # a part of setting up, not of the first check

    def check(step: Step) -> tuple[StepResult, np.ndarray]:
        verdict = StepResult.judge(step, dlrm.model, dlrm.seed, pooled)
        if layout is None:
            predictions = dlrm.predict(step.samples.dense, step.answers)
        else:
            predictions = dlrm.top(layout.to_values(step.answers))
        predictions[step.status != 0] = np.nan
        return verdict, predictions

    return check


def unchecked(step: Step) -> tuple[StepResult, np.ndarray]:
    """Return the verdict on a mini-batch whose answers have no values: nothing but refusals."""
    refused = int((step.status != 0).sum())
    return StepResult(0, 0, refused), np.full(len(step.samples), np.nan, np.float32)


class Checks(AbstractContextManager):
    """Checks mini-batches one after the other and hands on what came out.

    Parameters
    ----------
    check: of one mini-batch, which nothing changes any more.
    take: is given each, by the thread that checked it.
    beside: whether that is a thread of its own, so that others are simulated meanwhile.
    most: mini-batches that wait at most; with one more, `add` waits for the first.

    Members: ``check``; ``seconds``, CPU time of the checks and of handing on.
    """

    def __init__(self, check: Check, take: Take, *, beside: bool, most: int):
        self.check, self._take, self._most = check, take, most
        self._pool = ThreadPoolExecutor(1) if beside else None
        self._waiting: deque[Future[None]] = deque()
        self._failed = False
        self.seconds = 0.0

    def __exit__(self, *_) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def add(self, step: Step) -> None:
        """Check a mini-batch, now or soon. What ``check`` or ``take`` raises comes out here or of
        `settle`."""
        if self._pool is None:
            self._check(step)
            return
        self._waiting.append(self._pool.submit(self._check, step))
        self._wait(self._most)

    def settle(self) -> None:
        """Wait until all that was added is handed on."""
        self._wait(0)

    def _wait(self, most: int) -> None:
        while self._waiting and (len(self._waiting) > most or self._waiting[0].done()):
            self._waiting.popleft().result()

    def _check(self, step: Step) -> None:
        if self._failed:
            return  # what was to be handed on before is missing
        self._failed = True
        began = thread_time()
        self._take(step, *self.check(step))
        self.seconds += thread_time() - began
        self._failed = False
