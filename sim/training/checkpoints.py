"""Checkpoints of a training: when to write them, and how to resume."""

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gen.base.files import written_whole
from host.dlrm.checkpoint import Resumed, load_checkpoint, save_checkpoint
from host.dlrm.dense_trainer import DenseTrainer
from host.dlrm.optimizer import Optimizer
from host.dlrm.row_store import RowStore
from host.errors import InputError
from host.samples import Samples

__all__ = ["Checkpoints"]

PERIOD = 60.0
"""Seconds between checkpoints during training."""


class Checkpoints:
    """The optional checkpoint of a training.

    Parameters
    ----------
    path: path of the file; None for no checkpoint.
    dense, optimizer: MLPs and optimizer of the training.
    run: other settings that a resumed training must share, see
        :func:`host.dlrm.checkpoint.save_checkpoint`.
    period: seconds between checkpoints.
    """

    def __init__(self, path: str | None, dense: DenseTrainer, optimizer: Optimizer,
                 run: Mapping[str, object], period: float = PERIOD):
        self._path, self._dense, self._optimizer, self._run = path, dense, optimizer, run
        self._period = period
        self._next = time.monotonic() + period
        self._learned = hashlib.sha256()
        self._resumed = Resumed(0, "")

    def load(self, rows: RowStore) -> int:
        """Load the file, if it exists, into ``rows`` and the MLPs; return the steps done.

        Raises :class:`host.errors.InputError` if this training cannot resume from it.
        """
        if self._path is None or not Path(self._path).exists():
            return 0
        self._resumed = load_checkpoint(self._path, self._dense, rows, self._optimizer, self._run)
        return self._resumed.steps

    def learn(self, samples: Samples) -> None:
        """Add the samples of the next step to the hash of the training's input."""
        if self._path is None:
            return
        for name in ("dense", "labels", "bag_lengths", "tables", "rows"):
            values = np.ascontiguousarray(getattr(samples, name))
            self._learned.update(str((name, values.dtype, values.shape)).encode())
            self._learned.update(values)

    def check_samples(self) -> None:
        """Raise :class:`host.errors.InputError` unless the samples of :meth:`learn` equal those of
        the loaded steps."""
        if self._path is not None and self._resumed.steps and (
                self._resumed.samples != self._learned.hexdigest()):
            raise InputError(self._path, 0, 0, (
                f"was made from other samples than the first {self._resumed.steps} mini-batches of "
                f"this run: the data have changed under the same name"))

    @property
    def due(self) -> bool:
        """True if the next checkpoint is due."""
        return self._path is not None and time.monotonic() >= self._next

    def save(self, steps: int, rows: RowStore) -> None:
        """Write the state after ``steps`` steps."""
        if self._path is None:
            return
        with written_whole(self._path) as file:
            save_checkpoint(file, steps, self._dense, rows, self._optimizer, self._run,
                            self._learned.hexdigest())
        # Counted from the end of the write, to limit the share of slow writes.
        self._next = time.monotonic() + self._period
