"""Small mini-batches of real systems."""

import json

import pytest

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
    cached = point_of(8, False, system="lc", fidelity="rtl").system
    assert (cached.local_cache, cached.remote_cache, cached.fidelity) == (None, 0.0, "rtl")


@pytest.mark.parametrize("system", ["fs", "en"])
def test_gpus_interact_where_tables_differ(tmp_path, system):
    path = tmp_path / "mixed.toml"
    path.write_text('name = "mixed"\ndimension = 16\ndense = 1\nbottom = [16]\ntop = [1]\n'
                    'interaction = "cat"\n[[tables]]\nrows = 900\nbag = 3\n[[tables]]\n'
                    'rows = 5000\ndimension = 48\npooling = "mean"\nbag = [1, 5]\n')
    point = point_of(8, False, system=system, **SMALL | {"dataset": str(path)})
    found = measured(point)
    assert found["applicable"] and found["interval_us"] > 0
    assert any(note.startswith("NICs pad vectors of 16 to 48 values with zeros to 48")
               for note in found["notes"])
    assert point.kind.name == ("lc+rc" if system == "fs" else "en")
