"""Nothing changes a bit: whatever the cluster looks like, the predictions are the numpy model's."""

import hashlib
from functools import cache

import numpy as np
import pytest
from allpairspy import AllPairs

from host.datasets import default_model, open_samples
from host.dlrm import Dlrm
from host.generator import generate
from host.model import MODELS
from sim.options import RunOptions
from sim.report import failures
from sim.run import run
from tests.sim import inputs

CACHES = {"on": (), "off": ("local_cache=false",), "one set": ("local_cache_sets=1",)}

MATRIX = [
    {"nodes": nodes, "placement": placement, "cache": kind, "in_flight": flight,
     "mini_batch": batch, "skip": skip}
    for nodes, placement, kind, flight, batch, skip in AllPairs(
        [[1, 2, 4, 8], ["table", "row"], list(CACHES), [1, 4], [1, 7, 128], [True, False]])]


def _sha(predictions) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(p, "<f4").tobytes()
                                   for p in predictions)).hexdigest()


def _file_sha(path, kind: str) -> str:
    model = default_model(path, kind)
    return _sha(Dlrm(model, 1).forward(part) for part in open_samples(path, kind, model))


@cache
def _generated_sha(samples: int) -> str:
    model = MODELS["kaggle"]
    return _sha(Dlrm(model, 1).forward(part) for part in generate(model, samples, 1))


def _run(**options) -> dict:
    settings = CACHES[options.pop("cache", "on")]
    result = run(RunOptions(settings=settings, threads=1, **options))
    assert failures(result) == []
    assert result["bit_identical"] is True
    assert result["results"]["equal"] == result["samples"]
    return result


@pytest.mark.parametrize("case", MATRIX, ids=lambda case: "-".join(map(str, case.values())))
def test_criteo_like_samples(case):
    # A mini-batch of one sample takes as long as one of 128.
    samples = 96 if case["mini_batch"] == 1 else 512
    result = _run(samples=samples, **case)
    assert result["predictions_sha256"] == _generated_sha(samples)
    assert result["lookups"] == 26 * samples
    assert (result["node_cycles"]["skipped"] > 0) == case["skip"]


@pytest.mark.parametrize("nodes", [1, 2, 4, 8])
def test_multi_hot_bags(tmp_path, nodes):
    path = inputs.multi_hot_trace(tmp_path / "bags.txt", 200)
    result = _run(data=str(path), format="trace", nodes=nodes, mini_batch=32)
    assert result["predictions_sha256"] == _file_sha(path, "trace")


@pytest.mark.parametrize("nodes", [1, 2, 4, 8])
def test_movielens_form(tmp_path, nodes):
    path = inputs.movielens(tmp_path / "ratings.csv", 1000)
    result = _run(data=str(path), format="movielens", nodes=nodes)
    assert result["predictions_sha256"] == _file_sha(path, "movielens")


def test_criteo_file(tmp_path):
    path = inputs.criteo(tmp_path / "train.txt", 256)
    result = _run(data=str(path), format="criteo")
    assert result["predictions_sha256"] == _file_sha(path, "criteo")


def test_skipping_changes_no_cycle():
    results = [_run(samples=256, nodes=2, skip=skip) for skip in (True, False)]
    for result in results:
        for name in ("wall_seconds", "node_cycles", "node_cycles_per_second"):
            del result[name]
        del result["options"]["skip"]
    assert results[0] == results[1]


def test_threads_change_nothing():
    results = [run(RunOptions(samples=256, threads=threads)) for threads in (1, 2)]
    for result in results:
        for name in ("wall_seconds", "node_cycles_per_second"):
            del result[name]
        del result["options"]["threads"]
    assert results[0] == results[1]


@pytest.mark.parametrize("nodes", [1, 2, 4, 8])
def test_all_of_movielens(ratings, nodes):
    result = _run(data=str(ratings), format="movielens", nodes=nodes)
    assert result["samples"] == 100_836
    assert result["predictions_sha256"] == _movielens_sha(ratings)


@cache
def _movielens_sha(path) -> str:
    return _file_sha(path, "movielens")
