"""Serving of a row of the results page."""

import pytest

from sim.evaluation.nic_run import store_of_runs
from sim.experiments.results.cases import COMPARED, cases_of
from sim.experiments.results.serving import BOUNDS_US, row_of_served, served_of
from sim.serving import case as module
from sim.serving import measured, serve, setting
from sim.serving.case import searches_of_case, serve_case, setting_of


def test_a_row_is_served_on_its_model_and_cluster():
    case, = served_of(cases_of(("ranking",)))
    found, point = setting_of(case), case.systems[0].point
    assert (found.dataset, found.nodes, found.gpu, found.software, found.rdma, found.seed) == (
        point.workload.dataset, 4, "gpu_h100", "tuned_h100", True, 1)
    assert found.gpu_memory_bytes == case.systems[0].memory > 0
    assert found.sizes == (67, 270) and (min(found.candidates), max(found.candidates)) == (100, 700)


def _again(*_, **__):
    raise AssertionError("a kept part is measured again")


@pytest.mark.thorough
def test_serving_is_that_of_the_command_and_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "_WARMUP_SAMPLES", 1)
    monkeypatch.setattr(measured, "_MEASURED", 16)
    for where in (setting, serve):
        monkeypatch.setattr(where, "LADDER", (20_000.0, 20e6))
    monkeypatch.setattr(module, "_REQUESTS", 1000)
    case, = served_of(cases_of(("kaggle",)))
    told, runs = [], tmp_path / "runs of the page"
    searched = {each: each.measured(store_of_runs(runs)) for each in searches_of_case(case)}
    monkeypatch.setattr(serve, "chosen", _again)
    found = serve_case(case, tmp_path, 1, lambda *args: told.append(args), runs, searched)
    assert not (tmp_path / "runs").exists()
    assert {row["system"] for row in found["loads"]} == set(COMPARED) and not found["failed"]
    assert {row["slo_us"] for row in found["slos"]} == set(BOUNDS_US)
    assert told[-1][2] == pytest.approx(1)
    assert [(row["system"], row["mini_batch"]) for row in found["systems"]] == [
        (name, 128) for name in COMPARED]
    monkeypatch.setattr(serve, "measured", _again)
    monkeypatch.setattr(serve, "_at_load", _again)
    assert serve_case(case, tmp_path, 1) == found
    row = row_of_served(case, found)
    assert (row["workload"], row["mini_batch"], row["candidates"]) == ("kaggle", 128, [1])
