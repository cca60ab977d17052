"""Predictions match the numpy model bit for bit, on any cluster."""

import hashlib
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from allpairspy import AllPairs

from host.data.datasets import default_model, open_samples
from host.data.generator import generate
from host.dlrm.dlrm import Dlrm
from host.model import MODELS, load_model
from sim.cluster.cluster import Cluster
from sim.job.options import RunOptions
from sim.run.report import failures
from sim.run.run import Run, run
from tests.sim import inputs

CACHES = {"on": (), "off": ("local_cache=false",), "one set": ("local_cache_sets=1",)}
REMOTE = {"cache, merge": (), "cache": ("requester_merge=false",),
          "merge": ("remote_cache=false",), "one set": ("remote_cache_sets=1",),
          "none": ("remote_cache=false", "requester_merge=false")}

MATRIX = [
    {"nodes": nodes, "placement": placement, "cache": kind, "remote": remote,
     "in_flight": flight, "mini_batch": batch, "skip": skip}
    for nodes, placement, kind, remote, flight, batch, skip in AllPairs(
        [[1, 2, 4, 8], ["even", "row"], list(CACHES), list(REMOTE), [1, 4], [1, 7, 128],
         [True, False]])]


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
    settings = (*CACHES[options.pop("cache", "on")],
                *REMOTE[options.pop("remote", "cache, merge")])
    result = run(RunOptions.of(settings=settings, threads=1, **options))
    assert failures(result) == []
    assert result["bit_identical"] is True
    assert result["results"]["equal"] == result["samples"]
    return result


@pytest.mark.thorough
@pytest.mark.few(7)
@pytest.mark.parametrize("case", MATRIX, ids=lambda case: "-".join(map(str, case.values())))
def test_criteo_like_samples(case):
    # A mini-batch of one sample takes as long as one of 128.
    samples = {1: 32, 7: 128, 128: 256}[case["mini_batch"]]
    result = _run(samples=samples, **case)
    assert result["predictions_sha256"] == _generated_sha(samples)
    assert result["lookups"] == 26 * samples
    assert (result["node_cycles"]["skipped"] > 0) == case["skip"]


@pytest.mark.thorough
@pytest.mark.parametrize("nodes", [1, 2, 4, 8])
def test_multi_hot_bags(tmp_path, nodes):
    path = inputs.multi_hot_trace(tmp_path / "bags.txt", 200)
    result = _run(data=str(path), format="trace", nodes=nodes, mini_batch=32)
    assert result["predictions_sha256"] == _file_sha(path, "trace")


@pytest.mark.thorough
@pytest.mark.parametrize("asked", ["setting", "model"])
def test_means(tmp_path, asked):
    path = tmp_path / "model.toml"
    path.write_text(
        f'pooling = "{"mean" if asked == "model" else "sum"}"\nname = "bags"\ndimension = 16\n'
        'dense = 2\nbottom = [16]\ntop = [1]\n[[tables]]\nrows = 300\nbag = [0, 20]\n'
        '[[tables]]\nrows = 5000\nbag = [1, 3]\n[[tables]]\nrows = 7\n')
    settings = ("pooling=mean",) if asked == "setting" else ()
    result = run(RunOptions.of(model=str(path), samples=96, mini_batch=32, nodes=2, threads=1,
                            settings=settings))
    assert failures(result) == [] and result["bit_identical"] is True
    assert result["config"]["runtime"]["pooling"] == "mean"
    mean = replace(load_model(path), pooling="mean")
    assert result["predictions_sha256"] == _sha(
        Dlrm(mean, 1).forward(part) for part in generate(mean, 96, 1))
    total = replace(mean, pooling="sum")
    assert result["predictions_sha256"] != _sha(
        Dlrm(total, 1).forward(part) for part in generate(total, 96, 1))


@pytest.mark.thorough
@pytest.mark.parametrize("nodes", [1, 2, 4, 8])
def test_movielens_form(tmp_path, nodes):
    path = inputs.movielens(tmp_path / "ratings.csv", 1000)
    result = _run(data=str(path), format="movielens", nodes=nodes)
    assert result["predictions_sha256"] == _file_sha(path, "movielens")


@pytest.mark.thorough
def test_criteo_file(tmp_path):
    path = inputs.criteo(tmp_path / "train.txt", 256)
    result = _run(data=str(path), format="criteo")
    assert result["predictions_sha256"] == _file_sha(path, "criteo")


def _measured(quantum: int | None = None, **options) -> dict:
    """Return a run's measurements without those that depend on how it was simulated."""
    job = Run(RunOptions.of(samples=128, mini_batch=16, **options))
    job.cluster.quantum = quantum or job.cluster.quantum
    result = job.execute()
    assert failures(result) == []
    for name in ("wall_seconds", "cpu_seconds", "node_cycles", "node_cycles_per_second", "options"):
        result.pop(name, None)
    return result


@pytest.mark.thorough
@pytest.mark.few(2)
@pytest.mark.parametrize(("nodes", "network"), [
    (1, "ethernet_100g_switch"), (3, "ethernet_100g_direct"), (4, "ethernet_100g_switch")])
def test_how_it_is_run_changes_nothing(nodes, network):
    """Results, cycles and counters are the same, except for the number of evaluated cycles."""
    calm = _measured(nodes=nodes, network=network, threads=1)
    for way in ({"skip": False, "threads": 1}, {"threads": 2}, {"threads": 4},
                {"quantum": 101, "threads": 1}, {"quantum": 7, "threads": 2}):
        assert _measured(nodes=nodes, network=network, **way) == calm, way


@pytest.mark.thorough
def test_threads_evaluate_the_same_cycles():
    assert (_run(samples=256)["node_cycles"]
            == run(RunOptions.of(samples=256, threads=2))["node_cycles"])


@pytest.mark.thorough
@pytest.mark.parametrize(("nodes", "network", "longest"), [
    (1, "ethernet_100g_switch", 210),  # over PCIe and back
    (2, "ethernet_100g_switch", 344), (2, "ethernet_100g_direct", 133)])  # from NIC to NIC
def test_quanta_of_busy_nodes(nodes, network, longest):
    job = Run(RunOptions.of(samples=64, nodes=nodes, threads=1, network=network, skip=False))
    ends = [job.cluster.cycle]
    job.execute(lambda _, cycle: ends.append(cycle))
    assert max(np.diff(ends)) == longest


@pytest.mark.thorough
def test_a_quantum_that_is_too_long_is_found(monkeypatch):
    job = Run(RunOptions.of(samples=64, nodes=2, threads=1))
    monkeypatch.setattr(Cluster, "_horizon", lambda cluster: cluster.cycle + 400)
    with pytest.raises(RuntimeError, match=r"was given a beat for cycle \d+ in cycle \d+"):
        job.execute()


@pytest.mark.thorough
def test_idle_time_is_jumped_over():
    """One sample at a time: NIC and host wait for the GPU most of the time."""
    quanta = {}
    for skip in (True, False):
        job = Run(RunOptions.of(nodes=1, samples=8, mini_batch=1, in_flight=1, skip=skip))
        ends = [job.cluster.cycle]
        job.execute(lambda _, cycle, ends=ends: ends.append(cycle))
        quanta[skip] = np.diff(ends)
    assert quanta[False].max() == 210
    assert quanta[True].max() > 1000  # until a kernel is launched
    assert len(quanta[True]) < 0.6 * len(quanta[False])


@pytest.mark.thorough
@pytest.mark.parametrize("nodes", [
    1, *(pytest.param(nodes, marks=pytest.mark.slow) for nodes in (2, 4, 8))])
def test_all_of_movielens(ratings, nodes):
    result = _run(data=str(ratings), format="movielens", nodes=nodes)
    assert result["samples"] == 100_836
    assert result["predictions_sha256"] == _movielens_sha(ratings)


@cache
def _movielens_sha(path) -> str:
    return _file_sha(path, "movielens")
