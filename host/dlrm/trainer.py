"""Training of a DLRM in numpy: the reference for every simulated training."""

import hashlib
from typing import Protocol

import numpy as np

from host.dlrm.backward import Linear
from host.dlrm.dense_trainer import DenseStep, DenseTrainer
from host.dlrm.embedding import EmbeddingTables
from host.dlrm.mlp import linear_fixed
from host.dlrm.optimizer import Optimizer
from host.dlrm.row_store import RowStore
from host.model import Model
from host.samples import Samples

__all__ = ["Embeddings", "Trainer", "reference_trainer", "weights_sha256"]


class Embeddings(Protocol):
    """Interface of the rows in training, held in numpy or in NICs."""

    def pooled(self, samples: Samples) -> np.ndarray:
        """Return the pooled vectors of every bag: float32 ``[n, tables, d]``."""
        ...

    def update(self, samples: Samples, gradients: np.ndarray) -> None:
        """Update every row of the mini-batch with the gradients of its bags ``[n, tables, d]``."""
        ...


class Trainer:
    """Trains a dense part and its embeddings step by step.

    Parameters
    ----------
    dense: MLPs, interaction and loss.
    embeddings: `host.dlrm.embedding.EmbeddingTables`, or another implementation of `Embeddings`.

    ``steps`` counts completed steps.
    """

    def __init__(self, dense: DenseTrainer, embeddings: Embeddings) -> None:
        self.dense = dense
        self.embeddings = embeddings
        self.steps = 0

    def step(self, samples: Samples) -> DenseStep:
        """Train on the global mini-batch ``samples``."""
        self.dense.begin(samples)
        done = self.dense.finish(self.embeddings.pooled(samples))
        self.embeddings.update(samples, done.gradients)
        self.steps += 1
        return done


def reference_trainer(model: Model, seed: int, optimizer: Optimizer | None = None, nodes: int = 1,
                      partials: str = "exact", mlp: str = "fixed",
                      linear: Linear = linear_fixed) -> Trainer:
    """Return a trainer without a NIC; the MLPs use SGD with the rate of ``optimizer``."""
    optimizer = optimizer or Optimizer()
    return Trainer(DenseTrainer(model, seed, optimizer.learning_rate, mlp, linear),
                   EmbeddingTables(model, seed, optimizer, nodes, partials))


def weights_sha256(dense: DenseTrainer, rows: RowStore) -> str:
    """Return the SHA-256, in hex, of the digests of the written rows and of the MLPs' weights."""
    return hashlib.sha256(rows.digest() + dense.digest()).hexdigest()
