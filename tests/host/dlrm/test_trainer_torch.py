"""Training in numpy against PyTorch: the loss of each of the first 50 steps."""

import os
import random
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from host.data.datasets import open_samples
from host.data.generator import generate
from host.dlrm.optimizer import Optimizer
from host.dlrm.trainer import reference_trainer
from host.model import MODELS
from host.samples import rechunk
from tests.optional import absent

pytest.importorskip("torch", reason=absent("torch"))
from tests.host.dlrm.torch_dlrm import TorchDlrm

STEPS = 50
SEED = 4


def compare(model, samples, optimizer, batch, partials="exact"):
    theirs = TorchDlrm(model, SEED, optimizer)
    ours = reference_trainer(model, SEED, optimizer, nodes=3, partials=partials)
    losses = []
    for number, part in enumerate(islice(rechunk(samples, batch), STEPS)):
        losses.append(ours.step(part).loss)
        assert losses[-1] == pytest.approx(theirs.step(part), rel=1e-5), f"step {number}"
    assert len(losses) == STEPS
    return losses


def criteo():
    """Return samples and a model with small MLPs. With kaggle's own MLPs, one unit is so close to 0
    that rounding decides its ReLU, and row-wise Adagrad turns that into 2e-4 of the loss."""
    model = MODELS["kaggle"]
    model = model.with_rows(tuple(min(rows, 3000) for rows in model.rows))
    return replace(model, bottom=(64, 16), top=(64, 1))


OPTIMIZERS = [Optimizer("sgd", 0.1), Optimizer("rowwise-adagrad", 0.02)]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: optimizer.name)
def test_criteo(optimizer):
    model = criteo()
    losses = compare(model, generate(model, STEPS * 64, 1), optimizer, 64)
    assert np.mean(losses[-10:]) < np.mean(losses[:10])


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: optimizer.name)
@pytest.mark.parametrize("interaction, itself, pooling, partials", [
    ("dot", True, "mean", "rounded"), ("cat", False, "sum", "exact")])
def test_bags_and_interactions(optimizer, interaction, itself, pooling, partials):
    model = replace(criteo().with_rows((500, 3, 2000, 40)), dimension=32, bottom=(32,),
                    bags=((0, 4), (1, 1), (0, 9), (2, 2)), interaction=interaction,
                    interaction_itself=itself, pooling=pooling)
    compare(model, generate(model, STEPS * 32, 2), optimizer, 32, partials)


@pytest.fixture
def ratings(tmp_path):
    """Return MovieLens ``ratings.csv`` from the folder ``EMBERNIC_DATA``, or a generated file like
    it."""
    path = Path(os.environ.get("EMBERNIC_DATA", tmp_path)) / "movielens-ratings.csv"
    if not path.exists():
        path, rng = tmp_path / "ratings.csv", random.Random(1)
        path.write_text("userId,movieId,rating,timestamp\n" + "".join(
            f"{user},{int(193609 ** rng.random())},{rng.choice((2.5, 3, 4, 4, 5))},"
            f"{8 * 10 ** 8 + rng.randrange(10 ** 8)}\n" for user in range(1, 101)
            for _ in range(40)))
    return path


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: optimizer.name)
def test_movielens(ratings, optimizer):
    model = MODELS["movielens"]
    compare(model, open_samples(ratings, "movielens", model), optimizer, 64)
