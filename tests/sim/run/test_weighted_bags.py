"""Runs of tables whose bags have weights: the bits of requester pooling, and of numpy."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from host.batching import MiniBatch
from host.data.generator import generate
from host.dlrm.dlrm import Dlrm
from host.model import load_model
from host.samples import Samples
from sim.job.options import RunOptions
from sim.run.run import Run, run
from tests.host.batching.test_repeats import searched
from tests.sim.run.results import faultless
from tests.sim.run.test_bags import MODEL, _pooled
from tests.sim.run.test_bags_link import ALL, SMALL

pytestmark = pytest.mark.thorough
"""The tests compile NICs with owner pooling, which takes a minute."""

SAMPLES, SEED, MINI_BATCH = 48, 1, 16


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A model of two weighted tables, with short and long bags, and two others."""
    path = tmp_path_factory.mktemp("weighted") / "model.toml"
    path.write_text(MODEL.replace("rows = 5000", "weighted = true\nrows = 5000").replace(
        "rows = 400", "weighted = true\nrows = 400"))
    return path


def _options(model: Path, nodes: int = 2, **changes) -> RunOptions:
    given = {"config": "tiny", "model": str(model), "samples": SAMPLES, "mini_batch": MINI_BATCH,
             "threads": 1, "seed": SEED}
    return RunOptions.of(**given | changes, nodes=nodes)


def _samples(model: Path) -> Samples:
    samples = next(generate(load_model(str(model)), SAMPLES, SEED))
    assert samples.weights is not None and len(np.unique(samples.weights)) > 100
    return samples


@pytest.fixture(scope="module")
def requester(model) -> dict:
    """A run in which the GPUs of the requesters weight the rows of all tables."""
    return faultless(run(_options(model, settings=("deliver=unique", "owner_bags=64"))))


def test_predictions_are_those_of_numpy(model, requester):
    predictions = []
    job = Run(_options(model, pool="owner"))
    result = faultless(job.execute(predictions=predictions.append))
    _pooled(result)
    expected = Dlrm(load_model(str(model)), SEED).forward(_samples(model))
    assert np.concatenate(predictions).tobytes() == expected.tobytes()
    assert result["predictions_sha256"] == requester["predictions_sha256"]


@pytest.mark.parametrize("nodes", [2, 3])
@pytest.mark.parametrize("settings", [
    ("deliver=pooled", "completions=true"), ("deliver=unique", "completions=true"),
    ("interaction=true",)], ids=["pooled", "unique", "interaction"])
@pytest.mark.parametrize("pooling", ["sum", "mean"])
def test_bits_are_those_of_requester_pooling(model, requester, nodes, settings, pooling):
    wanted = requester if pooling == "sum" else faultless(run(_options(
        model, settings=("deliver=unique", "owner_bags=64", "pooling=mean"))))
    result = run(_options(model, nodes, pool="owner",
                          settings=(*settings, f"pooling={pooling}")))
    if settings == ("interaction=true",):  # the NIC gets own bags too
        faultless(result)
    else:
        _pooled(result)
    assert result["predictions_sha256"] == wanted["predictions_sha256"]
    assert (pooling == "mean") == (
        result["predictions_sha256"] != requester["predictions_sha256"])


@pytest.mark.parametrize("owner", [[1], [0, 3]])
def test_weighted_tables_of_both_kinds(model, requester, tmp_path, owner):
    """The host weights the bags of the other weighted table."""
    path = tmp_path / "pool.toml"
    path.write_text(f"owner = {owner}\n")
    result = run(_options(model, pool=str(path), settings=("deliver=unique",)))
    sums = _pooled(result)
    assert sums["dispatcher.remote"] > 0
    assert result["predictions_sha256"] == requester["predictions_sha256"]


@pytest.mark.parametrize("settings", [(), SMALL, ("deliver=unique",)], ids=["", "small", "unique"])
@pytest.mark.parametrize("rate", [0, 0.01])
def test_a_network_that_loses_and_changes_frames(model, requester, settings, rate):
    result = faultless(run(_options(model, 3, pool="owner", settings=("link=true", *settings),
                                    faults=ALL.format(rate=rate) if rate else None)))
    assert result["predictions_sha256"] == requester["predictions_sha256"]
    assert bool(rate) == bool(result["faults"] and result["faults"]["injected"])


@pytest.mark.parametrize("repeats", [
    "neighbours", "indices", pytest.param("nic", marks=pytest.mark.slow)])
@pytest.mark.parametrize("settings", [(), ("deliver=unique",)], ids=["pooled", "unique"])
@pytest.mark.parametrize("same", [True, False])
def test_bags_with_other_weights_are_no_repeats(model, repeats, settings, same):
    """Each sample comes twice; unless the weights are the ``same``, one bit of each differs."""
    samples = _samples(model)
    samples = samples.take(np.repeat(np.arange(SAMPLES // 2), 2))
    assert samples.weights is not None
    if not same:
        bits = samples.weights.view(np.uint32).copy()
        odd = np.repeat(np.arange(SAMPLES) % 2 == 1, np.diff(samples.key_offsets))
        heavy = np.isin(samples.tables, (1, 3))
        bits[odd & heavy] ^= 1
        samples = replace(samples, weights=bits.view(np.float32))
    batches = [MiniBatch(samples.slice(at, at + MINI_BATCH), np.arange(at, at + MINI_BATCH), True)
               for at in range(0, SAMPLES, MINI_BATCH)]
    predictions = []
    job = Run(_options(model, pool="owner", repeats=repeats, settings=settings), batches=batches)
    result = faultless(job.execute(predictions=predictions.append))
    expected = Dlrm(load_model(str(model)), SEED).forward(samples)
    assert np.concatenate(predictions).tobytes() == expected.tobytes()
    found = result["repeats"]["bags"] - result["repeats"]["sent"]
    again = [searched(batch.samples, 2, "neighbours" if repeats == "nic" else repeats)
             != np.arange(MINI_BATCH)[:, None] for batch in batches]
    if repeats == "nic":  # NICs get the bags of other nodes' tables
        owner = job.plan.owner_pooled > 0
        for each in again:
            for node in range(2):
                own = [table.owner == node for table in job.plan.tables]
                each[node * MINI_BATCH // 2:][:MINI_BATCH // 2, own | ~owner] = False
    assert sum(each.sum() for each in again) == found
    assert same == any(each[:, [1, 3]].any() for each in again)
