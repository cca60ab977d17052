"""Compiled NICs that train, small enough for `make test`: all tests share a build per engine.

Tests change only registers and the model. The NICs' tables hold far fewer keys than a mini-batch.
Tests may supply arbitrary gradients.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from host.dlrm.row_store import RowStore
from host.model import Model
from host.samples import Samples
from sim.nic.ports import Observer
from sim.training.options import TrainOptions
from sim.training.report import failures
from sim.training.train import Training
from tests.sim.interacting import write_model

__all__ = ["DIMENSIONS", "NIC", "ROOMY", "ROWS", "SETS", "WAYS", "Given", "options", "samples_of",
           "trained", "write"]

DIMENSIONS = (4, 8, 16, 32)
WAYS, SETS = 2, 4
"""Of the local reduction."""
NIC = ("max_dimension=32", "tables=4", "local_cache_rows=16", "remote_cache_rows=8",
       "dedupe_keys=16", "dedupe_in_flight=8", "scatter_entries=32", "hold_vectors=32",
       "dense_vectors=8", "remote_in_flight=32", f"gradient_ways={WAYS}",
       f"local_gradient_keys={SETS * WAYS}", "global_gradient_keys=8", "owner_bags=16")
"""Changes of ``tiny``."""
ROOMY = ("max_dimension=32", "tables=4", "local_cache_rows=1024", "remote_cache_rows=8",
         "dedupe_keys=1024", "hold_vectors=32", "dense_vectors=8", "gradient_ways=16",
         "local_gradient_keys=1024", "global_gradient_keys=1024")
"""The same with tables that hold all keys of any mini-batch here: another build."""

ROWS = (50, 1, 400, 1 << 20)
# Every sample uses this row; its sum has many terms, which makes rounding visible.
_BAGS = ((1, 2), (1, 1), (0, 3), (1, 2))


def write(folder: Path, dimension: int = 16) -> str:
    """Write a model of four tables and minimal MLPs; return its path."""
    model = Model(ROWS, dimension, 3, (4, dimension), (4, 1), "small", _BAGS)
    return write_model(folder / f"{dimension}.toml", model)


def options(path: str | Model, *, nic: Sequence[str] = NIC, settings: Sequence[str] = (),
            **changes) -> TrainOptions:
    """Return options of a training of 20 steps on two nodes with hashed rows."""
    return TrainOptions.of(**{
        "config": "tiny", "model": path, "nodes": 2, "samples": 80, "mini_batch": 4, "threads": 1,
        "placement": "row", "settings": (*nic, *settings), **changes})


def trained(path: str | Model, **changes) -> tuple[dict, RowStore]:
    """Train; check that the result has no faults and return it with the rows."""
    job = Training(options(path, **changes))
    result = job.execute()
    assert failures(result) == [] and result["complete"]
    assert result["bit_identical"] or changes.get("fidelity") == "model"
    return result, job.trainer.embeddings.rows


def samples_of(bags: Sequence[Sequence[Sequence[int]]]) -> Samples:
    """Return samples with the rows ``bags[sample][table]``."""
    lengths = np.array([[len(bag) for bag in sample] for sample in bags], np.int32)
    rows = [row for sample in bags for bag in sample for row in bag]
    return Samples(np.zeros((len(bags), 3), np.float32), np.zeros(len(bags), np.float32), lengths,
                   np.repeat(np.tile(np.arange(len(ROWS), dtype=np.int32), len(bags)),
                             lengths.reshape(-1)), np.array(rows, np.int64))


class Given:
    """NICs whose hosts get the gradients of bags from the test.

    Parameters: those of `options`; ``observer`` sees every frame between NICs.
    """

    def __init__(self, path: str, observer: Observer | None = None, **changes):
        nics = Training(options(path, **changes)).nics
        assert nics is not None
        self._nics, self._samples = nics, 0
        nics.simulation.cluster.observer = observer

    @property
    def rows(self) -> RowStore:
        """The current rows of all nodes."""
        return self._nics.tables.rows

    def step(self, samples: Samples, gradients: np.ndarray) -> None:
        """Look up ``samples``, then update their rows by ``gradients [n, tables, d]``."""
        self._nics.tables.pooled(samples)
        self._nics.tables.update(samples, gradients)
        self._samples += len(samples)

    def result(self) -> dict:
        """Return the result of all steps, compared bit for bit with the numpy reference."""
        return self._nics.measured(wall=1.0, samples=self._samples,
                                   steps=self._nics.tables.steps, ended=True)
