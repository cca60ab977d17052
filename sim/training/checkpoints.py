"""Checkpoints of a training: when to write them, and where from to continue."""

import time
from collections.abc import Mapping
from pathlib import Path

from host.dlrm.checkpoint import load_checkpoint, save_checkpoint
from host.dlrm.dense_trainer import DenseTrainer
from host.dlrm.optimizer import Optimizer
from host.dlrm.row_store import RowStore

__all__ = ["Checkpoints"]

PERIOD = 60.0
"""Seconds between checkpoints during training."""


class Checkpoints:
    """The checkpoint of a training, or none.

    Parameters
    ----------
    path: of the file, or None. dense, optimizer: of the training.
    run: other settings that a training which continues from the checkpoint must share, see
        :func:`host.dlrm.checkpoint.save_checkpoint`.
    """

    def __init__(self, path: str | None, dense: DenseTrainer, optimizer: Optimizer,
                 run: Mapping[str, object], period: float = PERIOD):
        self._path, self._dense, self._optimizer, self._run = path, dense, optimizer, run
        self._period = period
        self._next = time.monotonic() + period

    def load(self, rows: RowStore) -> int:
        """Load the file, if it exists, into ``rows`` and the MLPs; return the steps done.

        :class:`host.errors.InputError` if this training cannot continue from it.
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
        # Counted from the end of the write, so that slow writes never take most of the time.
        self._next = time.monotonic() + self._period
