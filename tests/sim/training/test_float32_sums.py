"""Training with sums in float32: rows are within the rounding of their gradients, on NICs too."""

from pathlib import Path

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.embedding import EmbeddingTables, key_gradients
from host.dlrm.optimizer import Optimizer
from host.dlrm.row_store import RowStore
from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import rechunk
from sim.training.comparison import Comparison
from sim.training.options import TrainOptions
from sim.training.report import failures
from sim.training.train import train
from tests.sim.interacting import write_model

MODEL = Model((50, 3, 4000, 70), 16, 3, (8, 16), (4, 1), "small",
              ((1, 3), (1, 1), (0, 5), (2, 2)))
SEED = 3


class Nic:
    """A node that sums gradients one by one, in a random order, and its comparison."""

    def __init__(self, optimizer: Optimizer):
        self.store, self._optimizer = RowStore(MODEL, SEED), optimizer
        self.comparison = Comparison(EmbeddingTables(MODEL, SEED, optimizer), [self.store],
                                     ShardPlan.deal(MODEL, 1, "row"), float32=True)

    def step(self, number: int, move: int = 0) -> None:
        """Train on some samples; ``move`` the first value of a row by that many units."""
        rng = np.random.default_rng(number)
        samples = next(rechunk(generate(MODEL, 60, number), 60))
        gradients = rng.standard_normal((len(samples), 4, 16), np.float32)
        values = key_gradients(samples, gradients, "sum")
        keys, places = np.unique(samples.keys, return_inverse=True)
        sums = np.full((len(keys), 16), -0.0, np.float32)
        for at in rng.permutation(len(places)):
            sums[places[at]] += values[at]
        vectors, states = self._optimizer.apply(*self.store.read(keys), sums)
        often = int(np.bincount(places).argmax())
        vectors.view(np.uint32)[often, 0] += np.uint32(move)
        self.store.write(keys, vectors, states)
        self.comparison.step(number, samples, gradients, [keys])


@pytest.mark.parametrize("name", ["sgd", "rowwise-adagrad"])
def test_a_random_order_is_within_the_bounds(name):
    """Step after step: the reference takes over the rows of the NICs."""
    nic = Nic(Optimizer(name))
    for number in range(4):
        nic.step(number)
    compared = nic.comparison
    assert compared.good and compared.first is None
    assert 0 < compared.rounded < compared.rows
    assert nic.store.digest() == compared.reference.rows.digest()


@pytest.mark.parametrize("name", ["sgd", "rowwise-adagrad"])
def test_a_wrong_row_is_found(name):
    nic = Nic(Optimizer(name))
    nic.step(0)
    nic.step(1, move=4000)
    assert not nic.comparison.good and nic.comparison.different == 1
    assert nic.comparison.first is not None
    assert nic.comparison.first["what"] == "has another vector"


@pytest.mark.slow
@pytest.mark.parametrize("changes", [
    {"learning_rate": 4.0}, {"optimizer": "rowwise-adagrad", "nodes": 3},
    {"settings": ("gradient_partials=rounded", "pooling=mean")},
    {"settings": ("local_reduction=false",)}])
def test_nics_train_within_the_bounds(tmp_path: Path, changes):
    path = write_model(tmp_path / "m.toml", MODEL)
    given = {"config": "tiny", "model": path, "nodes": 2, "samples": 96, "mini_batch": 32,
             "threads": 1, "placement": "row", **changes}
    given["settings"] = ("gradient_sums=float32", *changes.get("settings", ()))
    result = train(TrainOptions.of(**given))
    compared = result["rows_compared"]
    assert failures(result) == [] and result["complete"] and result["bit_identical"] is None
    assert 0 < compared["rounded"] < compared["rows"] and compared["different"] == 0
    assert result["results"] == {"equal": 96, "different": 0, "refused": 0}
