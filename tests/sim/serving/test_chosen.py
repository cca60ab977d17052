"""Placement and options of served systems: those of the search of ``sim compare``."""

from dataclasses import replace

import pytest

from host.systems import Tuning, fixed_of
from sim.evaluation.compared import row_of
from sim.evaluation.nic_run import store_of_runs
from sim.evaluation.point import Point
from sim.serving import measured as module
from sim.serving.chosen import Chosen, chosen
from sim.serving.measured import measured
from sim.serving.serve import _search
from sim.serving.setting import Setting, points_of
from tests.sim import inputs

H100 = {"nodes": 4, "software": "tuned_h100", "gpu": "gpu_h100", "rdma": True, "link": "pcie_h100"}
MEMORY = 80 * 10**9


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Traces of few samples."""
    monkeypatch.setattr(module, "_WARMUP_SAMPLES", 1)
    monkeypatch.setattr(module, "_MEASURED", 16)


@pytest.fixture
def setting(tmp_path) -> Setting:
    """A model with one history, too long to pool at its owner: whole tables leave most lookups at
    one node."""
    path = inputs.history(tmp_path / "history.toml", keys=400)
    return Setting(dataset=str(path), sizes=(8, 64), **H100)


def test_the_options_are_those_of_a_comparison_at_the_largest_mini_batch():
    setting = Setting(sizes=(8, 32), gpu_memory_bytes=MEMORY, **H100)
    found = chosen(_search(setting, "bl-tuned"))
    point = Point.named("bl-tuned", dict(
        H100, mini_batch=32, warmup=16, measured=16, placement=None, in_flight=16))
    row = row_of("bl-tuned", point, MEMORY)
    assert found["mini_batch"] == 32 and found["why"] is None
    assert found["options"] == row["options"] and len(found["options"]) > 3
    small, large = points_of(setting, "bl-tuned", searched=32, **found["fields"])
    copies = fixed_of(Tuning, large.system.fixed)["copied_rows"]
    assert fixed_of(Tuning, small.system.fixed) == {"copied_rows": copies}
    assert fixed_of(Tuning, large.system.fixed).keys() == vars(Tuning()).keys()
    assert measured(large)["interval_us"] == pytest.approx(row["interval_us"], abs=1e-6)


@pytest.mark.thorough
def test_rows_lie_where_the_search_places_them(setting, tmp_path):
    runs = store_of_runs(tmp_path / "runs")
    found = chosen(_search(setting, "lc+rc"), runs)
    assert found["options"][-1] == "placement row"
    points = points_of(setting, "lc+rc", **found["fields"])
    assert {point.cluster.placement for point in points} == {"row"}
    even = points_of(setting, "lc+rc", "even")
    own, other = (measured(each[-1], runs)["interval_us"] for each in (points, even))
    assert own < 0.9 * other


def test_a_system_that_does_not_fit_has_the_reason(setting):
    found = chosen(_search(replace(setting, gpu_memory_bytes=10**8), "bl-tuned"))
    assert "GPU memory" in found["why"] and found["options"] is found["fields"] is None


def test_nics_are_searched_as_models_and_the_largest_mini_batch_first():
    search = _search(Setting(sizes=(8, 32), fidelity="rtl"), "fs")
    assert [(point.workload.samples, point.workload.batching) for point in search.points] == [
        (32, "graph"), (32, "file"), (8, "graph"), (8, "file")]
    assert {point.system.fidelity for point in search.points} == {"model"}
    assert {point.system.local_cache for point in search.points} == {None}


def test_the_samples_fill_the_mini_batch_of_the_search(tmp_path):
    from tests.sim import inputs

    data = inputs.criteo(tmp_path / "train.txt", 300)
    setting = Setting(sizes=(8, 512), data=(str(data),), format="criteo", software="tuned")
    search = _search(setting, "bl-paper")
    assert chosen(search)["mini_batch"] == 8
    short = chosen(Chosen("bl-paper", search.points[:1], None))
    assert short["mini_batch"] is None and "too few samples" in short["why"]
