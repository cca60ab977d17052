"""Small mini-batches of real systems."""

import json

import pytest

from sim.evaluation import nic
from sim.evaluation.point import Point
from sim.evaluation.trace import plan_of, trace_of
from sim.serving import measured as module
from sim.serving.measured import COSTS, MiniBatches, measured, point_of

SMALL = {"nodes": 2, "software": "tuned"}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Traces of few samples."""
    monkeypatch.setattr(module, "_WARMUP_SAMPLES", 1)
    monkeypatch.setattr(module, "_MEASURED", 16)


@pytest.mark.parametrize(("system", "graph"), [("cpu-mpi", False), ("bl-paper", False),
                                               ("bl-tuned", False), ("lc", False), ("fs", True)])
def test_steps_come_back_from_json_as_they_were(system, graph):
    found = measured(point_of(8, graph, system=system, **SMALL))
    kept = MiniBatches.of(json.loads(json.dumps(found)))
    assert (kept.size, kept.graph, len(kept.steps)) == (8, graph, 16)
    assert [[stage.us for stage in step.stages] for step in kept.steps] == [
        [stage["us"] for stage in stages] for stages in found["steps"]]
    alone = [float(module.finished_us([step], [0.0], 1)[0]) for step in kept.steps]
    forming = kept.forming.us
    assert (forming > 0) == graph and min(alone) + forming == kept.least_us
    assert sum(alone) / 16 + forming == pytest.approx(found["service_us"])
    busy = module.busy_us(kept.steps)
    assert {name for stage in kept.steps[0].stages for name in stage.resources} <= set(busy)
    # Each node has half of the samples.
    assert kept.per_sample["cpu_us"] == pytest.approx(2 / 8 * sum(
        busy.get(name, 0) for name in ("cpu", "driver")) + forming / 8)
    assert set(kept.per_sample) == set(COSTS) and kept.per_sample["network_bytes"] > 0
    assert (kept.per_sample["nic_us"] > 0) == (system in ("lc", "fs"))
    assert (kept.per_sample["gpu_us"] > 0) == (system != "cpu-mpi")


def test_one_node_has_no_network():
    found = measured(point_of(8, False, system="bl-paper", nodes=1, software="tuned"))
    assert found["per_sample"]["network_bytes"] == 0 < found["per_sample"]["pcie_bytes"]


def test_points():
    small, large = point_of(1, False, system="fs"), point_of(2048, True, system="fs")
    of = small.workload
    assert (small.kind.name, of.batching, of.samples) == ("lc+rc+sc", "file", 1)
    of = large.workload
    assert (of.batching, of.warmup % 16, of.measured % 16) == ("graph", 0, 0)
    plain = point_of(8, False, system="bl-paper", fidelity="rtl")
    assert (plain.system.local_cache, plain.system.fidelity) == (0.0, "model")
    assert point_of(8, False, system="lc", fidelity="rtl").system.fidelity == "rtl"


def test_caches_are_those_of_the_reference_mini_batch():
    """The number of samples in the trace must not change the caches."""
    base = Point.named("lc+rc", nodes=2)
    rows, _ = nic.cache_rows(base, base.kind.nics(base), trace_of(base.workload))
    for size, measures in ((8, 16), (512, 32)):
        point = point_of(size, False, system="lc+rc", **SMALL).changed(measured=measures)
        own = module._with_reference_caches(point)
        found, _ = nic.cache_rows(own, own.kind.nics(own), trace_of(own.workload))
        reach = nic.reaching(trace_of(own.workload), plan_of(own, trace_of(own.workload)))
        for cache in rows:
            assert found[cache] == pytest.approx(min(rows[cache], reach[cache]), rel=0.1)
        assert (own.system.local_cache == 1) == (size == 8)
    off = point_of(8, False, system="bl-paper", **SMALL)
    assert module._with_reference_caches(off) is off


@pytest.mark.parametrize("system", ["fs", "en"])
def test_gpus_interact_where_tables_differ(tmp_path, system):
    path = tmp_path / "mixed.toml"
    path.write_text('name = "mixed"\ndimension = 16\ndense = 1\nbottom = [16]\ntop = [1]\n'
                    'interaction = "cat"\n[[tables]]\nrows = 900\nbag = 3\n[[tables]]\n'
                    'rows = 5000\ndimension = 48\npooling = "mean"\nbag = [1, 5]\n')
    point = point_of(8, False, system=system, **SMALL | {"dataset": str(path)})
    found = measured(point)
    assert found["applicable"] and found["interval_us"] > 0
    assert "NICs send vectors of 16 to 48 values padded with zeros to 48" in found["notes"]
    assert point.kind.name == ("lc+rc" if system == "fs" else "en")
