"""DLRM from PyTorch's own parts, for comparison with host.dlrm.dlrm and its trainer."""

from collections.abc import Iterator

import numpy as np
import torch

from host.dlrm.dlrm import Dlrm
from host.dlrm.optimizer import Optimizer
from host.dlrm.rows import row_values
from host.model import Model
from host.samples import Samples

__all__ = ["KINK", "TorchDlrm"]

torch.set_num_threads(1)  # its layers are small, and its threads spin while they wait

KINK = 1e-6
"""Distance from 0 within which rounding decides a ReLU, and either gradient is right."""


class TorchDlrm:
    """A DLRM in training, with the initial weights and rows of host.dlrm.

    Parameters
    ----------
    model, seed: shape and initial weights.
    optimizer: of the rows; the MLPs learn at its rate, by SGD.
    precision: of all values.
    samples: all samples of the training: tables then contain only their rows, because a table of
        ten million rows would take most of a test's time. None for whole tables.

    Members: ``sided``, how often a ReLU's own choice was overridden, see `step`.
    """

    def __init__(self, model: Model, seed: int, optimizer: Optimizer,
                 precision: torch.dtype = torch.float32, samples: Samples | None = None):
        self.model, self.optimizer, self.precision = model, optimizer, precision
        self.sided = 0
        ours = Dlrm(model, seed)
        self.mlps = [[tuple(torch.tensor(values, dtype=precision, requires_grad=True)
                            for values in (layer.weights.T, layer.biases)) for layer in layers]
                     for layers in (ours.bottom_layers, ours.top_layers)]
        self.rows = [np.arange(rows) if samples is None
                     else np.unique(samples.rows[samples.tables == table])
                     for table, rows in enumerate(model.rows)]
        self.tables = [torch.nn.EmbeddingBag.from_pretrained(
            torch.from_numpy(row_values(
                model, seed, np.full(len(rows), table), rows)).to(precision),
            freeze=False, mode=model.pooling, sparse=True, include_last_offset=True)
            for table, rows in enumerate(self.rows)]
        self.states = [torch.zeros(len(rows), dtype=precision) for rows in self.rows]

    def _interact(self, z: torch.Tensor) -> torch.Tensor:
        if self.model.interaction == "cat":
            return z.flatten(1)
        offset = 0 if self.model.interaction_itself else -1
        i, j = torch.tril_indices(z.shape[1], z.shape[1], offset)
        return torch.cat([z[:, 0], torch.bmm(z, z.transpose(1, 2))[:, i, j]], dim=1)

    def _relu(self, x: torch.Tensor, gates: Iterator[np.ndarray] | None) -> torch.Tensor:
        if gates is None:
            return torch.relu(x)
        own = x > 0
        passed = torch.where(x.abs() < KINK, torch.from_numpy(next(gates)), own)
        self.sided += int((passed != own).sum())
        return torch.where(passed, x, torch.zeros_like(x))

    def step(self, samples: Samples, gates: Iterator[np.ndarray] | None = None) -> float:
        """Train on a mini-batch; return its loss before the update.

        ``gates``: outputs of host.dlrm's ReLUs in turn, bottom MLP then top. They replace a ReLU's
        own choice for values within `KINK` of 0. By default every ReLU is PyTorch's own.
        """
        x = torch.from_numpy(samples.dense).to(self.precision)
        for weights, biases in self.mlps[0]:
            x = self._relu(torch.nn.functional.linear(x, weights, biases), gates)
        z = [x]
        for table, bags in enumerate(self.tables):
            lengths = samples.bag_lengths[:, table]
            rows = np.searchsorted(self.rows[table], samples.rows[samples.tables == table])
            z.append(bags(torch.from_numpy(rows),
                          torch.from_numpy(np.append(0, np.cumsum(lengths)))))
        x = self._interact(torch.stack(z, dim=1))
        for number, (weights, biases) in enumerate(self.mlps[1]):
            x = torch.nn.functional.linear(
                self._relu(x, gates) if number else x, weights, biases)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            x[:, 0], torch.from_numpy(samples.labels).to(self.precision))
        loss.backward()
        with torch.no_grad():
            self._update()
        return loss.item()

    def _update(self) -> None:
        rate = self.optimizer.learning_rate
        for parameter in (p for layers in self.mlps for layer in layers for p in layer):
            parameter -= rate * parameter.grad
            parameter.grad = None
        for bags, states in zip(self.tables, self.states):
            gradient = bags.weight.grad.coalesce()
            rows, values = gradient.indices()[0], gradient.values()
            if self.optimizer.name == "rowwise-adagrad":
                states[rows] += (values * values).mean(dim=1)
                values = values / (states[rows].sqrt() + self.optimizer.epsilon)[:, None]
            bags.weight[rows] -= rate * values
            bags.weight.grad = None
