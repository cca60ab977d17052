"""Runs of tables whose bags have weights: the bits of requester pooling, and of numpy."""

from pathlib import Path

import numpy as np
import pytest

from host.data.generator import generate
from host.dlrm.dlrm import Dlrm
from host.model import load_model
from sim.job.options import RunOptions
from sim.run.run import Run, run
from tests.sim.run.results import faultless
from tests.sim.run.test_bags import MODEL, _pooled

pytestmark = pytest.mark.thorough
"""The tests compile NICs with owner pooling, which takes a minute."""

SAMPLES, SEED = 48, 1


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A model of two weighted tables, with short and long bags, and two others."""
    path = tmp_path_factory.mktemp("weighted") / "model.toml"
    path.write_text(MODEL.replace("rows = 5000", "weighted = true\nrows = 5000").replace(
        "rows = 400", "weighted = true\nrows = 400"))
    return path


def options(model: Path, nodes: int = 2, **changes) -> RunOptions:
    given = {"config": "tiny", "model": str(model), "samples": SAMPLES, "mini_batch": 16,
             "threads": 1, "seed": SEED}
    return RunOptions.of(**given | changes, nodes=nodes)


@pytest.fixture(scope="module")
def requester(model) -> dict:
    """A run whose bags the GPUs of the requesters weight."""
    return faultless(run(options(model, settings=("deliver=unique",))))


def test_predictions_are_those_of_numpy(model, requester):
    predictions = []
    job = Run(options(model, pool="owner"))
    result = faultless(job.execute(predictions=predictions.append))
    samples = next(generate(load_model(str(model)), SAMPLES, SEED))
    assert samples.weights is not None and len(np.unique(samples.weights)) > 100
    expected = Dlrm(load_model(str(model)), SEED).forward(samples)
    assert np.concatenate(predictions).tobytes() == expected.tobytes()
    assert result["predictions_sha256"] == requester["predictions_sha256"]


@pytest.mark.parametrize("nodes", [2, 3])
@pytest.mark.parametrize("settings", [
    ("deliver=pooled",), ("deliver=unique", "completions=true"), ("interaction=true",)],
    ids=["pooled", "unique", "interaction"])
def test_bits_are_those_of_requester_pooling(model, requester, nodes, settings):
    result = run(options(model, nodes, pool="owner", settings=settings))
    _pooled(result)
    assert result["predictions_sha256"] == requester["predictions_sha256"]
