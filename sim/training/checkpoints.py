"""When a training leaves a checkpoint."""

import time
from collections.abc import Mapping
from pathlib import Path

from host.dlrm.checkpoint import load_checkpoint, save_checkpoint
from host.dlrm.dense_trainer import DenseTrainer
from host.dlrm.optimizer import Optimizer
from host.dlrm.row_store import RowStore

__all__ = ["Checkpoints"]

PERIOD = 60.0
"""Seconds between two checkpoints while training goes on."""


class Checkpoints:
    """The checkpoint of a training, or none.

    Parameters
    ----------
    path: of the file, None for none. dense, optimizer: of the training.
    run: what else those that go on from it must have in common, see
        :func:`host.dlrm.checkpoint.save_checkpoint`.
    """

    def __init__(self, path: str | None, dense: DenseTrainer, optimizer: Optimizer,
                 run: Mapping[str, object], period: float = PERIOD):
        self._path, self._dense, self._optimizer, self._run = path, dense, optimizer, run
        self._period = period
        self._next = time.monotonic() + period

    def load(self, rows: RowStore) -> int:
        """Read the file, if it is there, into ``rows`` and the MLPs; return the steps done.

        :class:`host.errors.InputError` where it is not one to go on from.
        """
        if self._path is None or not Path(self._path).exists():
            return 0
        return load_checkpoint(self._path, self._dense, rows, self._optimizer, self._run)

    @property
    def due(self) -> bool:
        """Whether it is time for the next one."""
        return self._path is not None and time.monotonic() >= self._next

    def save(self, steps: int, rows: RowStore) -> None:
        """Write the state after ``steps`` steps."""
        if self._path is None:
            return
        save_checkpoint(self._path, steps, self._dense, rows, self._optimizer, self._run)
        # From now on: however long a writing takes, most of the time goes to the work.
        self._next = time.monotonic() + self._period
