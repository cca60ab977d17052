"""Training on mini-batches formed by an algorithm: the same samples in a different order."""

import re

import pytest

from host.batching import ALGORITHMS, Batcher
from host.data.generator import generate
from host.dlrm.trainer import reference_trainer, weights_sha256
from sim.training.options import TrainOptions
from sim.training.train import Training, train
from tests.sim.interacting import write_model
from tests.sim.training.test_train_model import MODEL, SAMPLES

BATCH, WINDOW = 16, 64


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    return write_model(tmp_path_factory.mktemp("model") / "small.toml", MODEL)


def options(path, **changes) -> TrainOptions:
    return TrainOptions.of(**{
        "fidelity": "model", "engine": "pysim", "config": "tiny", "model": path, "nodes": 4,
        "samples": SAMPLES, "mini_batch": BATCH, "batching": "graph", "window": WINDOW,
        "epochs": 2, **changes})


def test_it_is_the_reference_on_these_mini_batches(path):
    trainer = reference_trainer(MODEL, 1, None, 1, "exact")
    formed = [batch for _ in range(2) for batch in Batcher(
        ALGORITHMS["graph"], BATCH, WINDOW).form(generate(MODEL, SAMPLES, 1))]
    losses = [trainer.step(batch.samples).loss for batch in formed]
    result = train(options(path))
    assert result["loss"] == losses and result["samples"] == 2 * SAMPLES
    assert result["weights_sha256"] == weights_sha256(trainer.dense, trainer.embeddings.rows)
    assert result["batching"]["each"] == {
        "unique_keys": [batch.unique for batch in formed],
        "similarity": [batch.similarity for batch in formed],
        "downgrade": [batch.downgrade for batch in formed]}
    assert result["options"]["window"] == WINDOW
    plain = train(options(path, batching="file", window=None))
    assert plain["loss"] != losses and plain["steps"] == result["steps"]
    assert plain["batching"]["unique_keys"] > result["batching"]["unique_keys"]


@pytest.mark.parametrize("steps", [2, 4, 13])
def test_a_checkpoint_is_continued_inside_a_window(path, tmp_path, steps):
    checkpoint = str(tmp_path / "c.npz")
    whole = train(options(path))
    looks = iter([None] * steps)
    first = Training(options(path, checkpoint=checkpoint)).execute(
        stop=lambda: next(looks, "SIGINT"))
    second = train(options(path, checkpoint=checkpoint))
    assert second["first_step"] == first["steps"] == steps
    assert first["loss"] + second["loss"] == whole["loss"]
    assert second["weights_sha256"] == whole["weights_sha256"]


def test_a_checkpoint_of_other_mini_batches_is_refused(path, tmp_path):
    checkpoint = str(tmp_path / "c.npz")
    train(options(path, checkpoint=checkpoint))
    for changes, said in (({"window": 32}, "run.batching is ['graph', 64], not ['graph', 32]"),
                          ({"batching": "greedy"}, "['graph', 64], not ['greedy', 64]"),
                          ({"batching": "file", "window": None}, "['graph', 64], not None")):
        with pytest.raises(ValueError, match=re.escape(said)):
            Training(options(path, **{"checkpoint": checkpoint, "epochs": 3} | changes))
