"""Random models whose tables differ, and a plain reference that holds each table by itself."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np

from host.data.generator import generate
from host.dlrm.backward import activations, mlp_backward
from host.dlrm.dlrm import Dlrm, sigmoid
from host.dlrm.exact_keys import sums_by_key
from host.dlrm.loss import binary_cross_entropy
from host.dlrm.mlp import Layer
from host.dlrm.rows import row_values
from host.model import Model
from host.samples import Samples, rechunk

DIMENSIONS = (3, 4, 8, 10, 16, 32, 48, 64)


def mixed_model(seed: int) -> Model:
    """Return a model with tables of random dimensions and poolings, of which two always differ."""
    rng = Random(seed)
    tables, dimension = rng.randint(2, 6), rng.choice(DIMENSIONS)
    wide = [rng.choice(DIMENSIONS) for _ in range(tables - 2)] + rng.sample(DIMENSIONS, 2)
    pools = [rng.choice(("sum", "mean")) for _ in range(tables - 2)] + ["sum", "mean"]
    rng.shuffle(wide)
    rng.shuffle(pools)
    bags = tuple((low, low + rng.randint(0, 6)) for low in (rng.randint(0, 2) for _ in wide))
    return Model(tuple(rng.choice((3, 50, 5000)) for _ in wide), dimension, 3, (8, dimension),
                 (5, 1), "mixed", bags, interaction="cat", dimensions=tuple(wide),
                 poolings=tuple(pools))


class Plain:
    """Tables as dictionaries of rows without padding, and the MLPs of a model.

    ``rows``: rows read so far, by table and row; ``written``: keys of the updated rows.
    """

    def __init__(self, model: Model, seed: int = 1):
        self.model, self.dlrm, self._seed = model, Dlrm(model, seed), seed
        self.rows: dict[tuple[int, int], np.ndarray] = {}
        self.written: set[tuple[int, int]] = set()
        # A table's rows depend on seed, number and rows alone; narrow rows are prefixes.
        self._widest = replace(model, dimensions=(64,) * model.tables, poolings=())

    def row(self, table: int, row: int) -> np.ndarray:
        """Return a row: as many values as its table has."""
        if (table, row) not in self.rows:
            whole = row_values(self._widest, self._seed, np.array([table]), np.array([row]))[0]
            self.rows[table, row] = whole[:self.model.table_dimensions[table]].copy()
        return self.rows[table, row]

    def concatenated(self, samples: Samples, dense: np.ndarray) -> np.ndarray:
        """Return the input of the top MLP: float32 ``[n, width]``."""
        lines, at = [], 0
        for number, lengths in enumerate(samples.bag_lengths.tolist()):
            parts = [dense[number]]
            for table, length in enumerate(lengths):
                total = np.zeros(self.model.table_dimensions[table], np.float32)
                for place, row in enumerate(samples.rows[at:at + length].tolist()):
                    total = total + self.row(table, row) if place else self.row(table, row)
                if self.model.poolings[table] == "mean" and length:
                    total = total / np.float32(length)
                parts.append(total)
                at += length
            lines.append(np.concatenate(parts))
        return np.array(lines, np.float32)

    def predictions(self, samples: Samples) -> np.ndarray:
        """Return the predictions of ``samples``."""
        values = self.concatenated(samples, self.dlrm.bottom(samples.dense))
        return sigmoid(activations(values, self.dlrm.top_layers, last_relu=False)[-1][:, 0])

    def train(self, samples: Samples, rate: float) -> float:
        """Train on a mini-batch by SGD; return its loss."""
        bottom = activations(samples.dense, self.dlrm.bottom_layers)
        top = activations(self.concatenated(samples, bottom[-1]), self.dlrm.top_layers,
                          last_relu=False)
        loss = binary_cross_entropy(top[-1][:, 0], samples.labels)
        of_top, mixed = mlp_backward(top, self.dlrm.top_layers, loss.gradient[:, None],
                                     last_relu=False)
        assert mixed is not None  # gradients of the inputs
        ends = np.cumsum((self.model.dimension, *self.model.table_dimensions))
        of_bottom, _ = mlp_backward(bottom, self.dlrm.bottom_layers, mixed[:, :ends[0]],
                                    inputs=False)
        for table, (first, last) in enumerate(pairwise(ends.tolist())):
            lengths = samples.bag_lengths[:, table]
            bags = mixed[:, first:last]
            if self.model.poolings[table] == "mean":
                bags = bags / np.maximum(lengths, 1).astype(np.float32)[:, None]
            rows = samples.rows[samples.tables == table]
            for row, total in zip(*sums_by_key(rows, np.repeat(bags, lengths, axis=0))):
                self.rows[table, int(row)] = self.row(table, int(row)) - np.float32(rate) * total
                self.written.add((table, int(row)))
        for layers, gradients in ((self.dlrm.bottom_layers, of_bottom),
                                  (self.dlrm.top_layers, of_top)):
            layers[:] = [Layer(old.weights - np.float32(rate) * new.weights,
                               old.biases - np.float32(rate) * new.biases)
                         for old, new in zip(layers, gradients)]
        return loss.mean


def batches(model: Model, count: int, size: int, seed: int = 1) -> list[Samples]:
    """Return generated mini-batches."""
    return list(rechunk(generate(model, count * size, seed), size))


def toml_of(model: Model) -> str:
    """Return a model as a file."""
    tables = zip(model.rows, model.bags, model.table_dimensions, model.poolings)
    return "\n".join([
        f'name = "{model.name}"', f"dimension = {model.dimension}", f"dense = {model.dense}",
        f"bottom = {list(model.bottom)}", f"top = {list(model.top)}", 'interaction = "cat"',
        *(f'[[tables]]\nrows = {rows}\nbag = {list(bag)}\ndimension = {dimension}\n'
          f'pooling = "{pooling}"' for rows, bag, dimension, pooling in tables)]) + "\n"
