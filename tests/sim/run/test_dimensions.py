"""Vectors of 4 to 256 values match the numpy model bit for bit, however they share beats."""

from functools import cache

import numpy as np
import pytest
from allpairspy import AllPairs

from host.data.generator import generate
from host.dlrm.dlrm import Dlrm
from host.model import Model
from sim.job.options import RunOptions
from sim.run.report import failures
from sim.run.run import Run

ROWS = (50, 3000, 1 << 20, 7, 90_000)
BAGS = {"one-hot": (), "bags": ((1, 1), (0, 3), (2, 2), (0, 9), (1, 6))}
SAMPLES = 160

CASES = [{"dimension": d, "nodes": n, "bags": bags, "remote": remote}
         for d, n, bags, remote in AllPairs([
             [4, 8, 16, 32, 48, 64], [1, 2, 4], list(BAGS), [True, False]])]


def _model(dimension: int, bags: str) -> Model:
    return Model(ROWS, dimension, 3, (8, dimension), (4, 1), f"d{dimension}", BAGS[bags])


@cache
def _predictions(dimension: int, bags: str) -> bytes:
    model = _model(dimension, bags)
    parts = [Dlrm(model, 1).forward(part) for part in generate(model, SAMPLES, 1)]
    return np.ascontiguousarray(np.concatenate(parts), "<f4").tobytes()


def _check(tmp_path, dimension: int, nodes: int, bags: str, remote: bool, *settings: str) -> Run:
    model = _model(dimension, bags)
    path = tmp_path / "model.toml"
    path.write_text("\n".join([
        f'name = "{model.name}"', f"dimension = {dimension}", "dense = 3",
        f"bottom = {list(model.bottom)}", f"top = {list(model.top)}",
        *(f"[[tables]]\nrows = {rows}\nbag = {list(bag)}" for rows, bag in zip(
            ROWS, BAGS[bags] or [(1, 1)] * len(ROWS)))]) + "\n")
    job = Run(RunOptions.of(
        config="tiny", model=str(path), nodes=nodes, samples=SAMPLES, mini_batch=32, threads=1,
        placement="row", settings=(*settings, *(() if remote else (
            "remote_cache=false", "requester_merge=false")))))
    seen: list[np.ndarray] = []
    result = job.execute(predictions=seen.append)
    assert failures(result) == []
    assert result["bit_identical"] and result["results"]["equal"] == SAMPLES
    assert np.concatenate(seen).astype("<f4").tobytes() == _predictions(dimension, bags)
    for counters in result["counters"]:
        for name, value in counters.items():
            assert not value or not name.endswith(
                ("overruns", "bad_length", "bad_landings", "bad_fills")), name
    return job


@pytest.mark.few(7)
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case.values())))
def test_results_are_the_numpy_models(tmp_path, case):
    _check(tmp_path, **case)


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2, 4])
@pytest.mark.parametrize("bags", list(BAGS))
@pytest.mark.parametrize("dimension", [4, 16, 128, 256])
def test_long_vectors(tmp_path, dimension, bags, nodes):
    """Use another NIC, whose vectors have up to 16 beats."""
    _check(tmp_path, dimension, nodes, bags, True, "max_dimension=256")


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.parametrize("longest", [4, 8])
def test_memories_below_a_beat(tmp_path, longest, nodes):
    """The memories of these NICs contain only the lanes that are used."""
    for dimension in {4, longest}:
        _check(tmp_path, dimension, nodes, "bags", True, f"max_dimension={longest}")
