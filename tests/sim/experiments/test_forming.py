"""Threads that form mini-batches: their time is part of systems whose mini-batches they form."""

from dataclasses import dataclass, replace
from math import inf

import pytest

from host.batching import ALGORITHMS
from host.devices.cpu import CpuProfile
from host.toml.profile import load_profile
from sim.evaluation.compared import formed_best
from sim.evaluation.forming import ALGORITHM_COST, FILE_ORDER, Forming, forming_of
from sim.evaluation.measure import measure
from sim.evaluation.point import Point
from sim.evaluation.site import Site
from sim.evaluation.store import Store
from sim.experiments.sensitivity.constants import uncertain

CPU = load_profile("cpu_xeon_6226r", CpuProfile)
SMALL = {"nodes": 2, "mini_batch": 16, "warmup": 2, "measured": 4, "window": 32}
KEYS = 16 * 26


def test_each_endpoint_forms_with_the_cores_that_no_other_thread_has():
    found = forming_of("graph", 1000, CPU, 3)
    assert found == Forming(1000 * CPU.graph_key_ns / 1e3, 3 * 14)
    assert found.interval_us == found.us / 42
    assert forming_of("file", 1000, CPU, 3).us == 0
    assert forming_of("graph", 1000, replace(CPU, cores=2), 1).threads == 1
    assert ALGORITHM_COST.keys() == ALGORITHMS.keys()


def test_windows_wait_for_a_free_thread_and_end_in_order():
    forming = Forming(10.0, 2)
    ready, first = [0.0, 0.0, 1.0, 1.0, 2.0, 2.0], [True, False] * 3
    assert forming.formed(ready, first) == [10.0, 20.0, 20.0, 21.0, 30.0, 40.0]
    assert forming.formed([5.0, 50.0], [True, True]) == [15.0, 60.0]


@pytest.mark.parametrize("workload", ["inference", "training"])
def test_the_time_of_the_algorithm_is_latency_and_bounds_the_interval(workload):
    def found(factor: float) -> dict:
        return measure(Point.named("ga+lc", workload=workload, scaled=(
            ("cpu_xeon_6226r.graph_key_ns", factor),), **SMALL))

    least, plain, slow = found(1e-6), found(1), found(1e4)
    us = KEYS * CPU.graph_key_ns / 1e3
    for name in ("service_us", "phases_us.overhead"):
        both = [each["phases_us"]["overhead"] if "." in name else each[name]
                for each in (plain, least)]
        assert both[0] - both[1] == pytest.approx(us, rel=1e-5)
    assert sum(plain["phases_us"].values()) == pytest.approx(plain["service_us"])
    assert plain["interval_us"] == least["interval_us"] > us / 28
    assert slow["interval_us"] == pytest.approx(1e4 * us / 28)
    assert slow["bottleneck"] == {"resource": "batching", "us": slow["interval_us"],
                                  "utilisation": 1.0}
    if workload == "inference":
        assert plain["request_us"]["p50"] > least["request_us"]["p50"] + us / 2


def test_mini_batches_in_file_order_cost_nothing():
    assert "batching" not in measure(Point.named("lc", **SMALL))["busy_us"]


@pytest.mark.thorough
def test_the_full_system_forms_mini_batches_only_where_it_is_faster(tmp_path):
    runs, few = Store(tmp_path, "v"), {"fixed": ("pool=requester",), "pace_us": 64}

    def chosen(name: str, factor: float) -> str:
        point = Point.named("fs", scaled=(("cpu_xeon_6226r.graph_key_ns", factor),), **SMALL, **few)
        found = formed_best(name, point, runs=runs)
        assert found.site.trace is Site.of(found.point).trace
        return found.point.workload.batching

    assert chosen("fs", 1e4) == "file" and chosen("fs+ga", 1e4) == "graph"


@pytest.mark.slow
def test_the_full_system_forms_mini_batches_that_small_caches_miss(tmp_path):
    """Threads are free, and the network is slow: the algorithm saves lookups."""
    slow = {"scaled": (("ethernet_100g_switch.bandwidth_gbit_s", 0.001),
                       ("cpu_xeon_6226r.graph_key_ns", 1e-6))}
    small = SMALL | {"mini_batch": 64, "window": 1024, "remote_cache": 0.02}
    found = formed_best("fs", Point.named("fs", **small, **slow), runs=Store(tmp_path, "v"))
    assert found.point.workload.batching == "graph"


def test_the_time_of_the_algorithm_is_uncertain():
    assert "cpu_xeon_6226r.graph_key_ns" in uncertain(Point.named("fs").cluster)
    assert "cpu_xeon_6226r.operator_us" not in uncertain(Point.named("fs").cluster)


@dataclass(frozen=True)
class _Found:
    """A placed system, and its own site: without time of the algorithm."""

    point: Point
    interval_us: float
    built: str = "built"
    forming: Forming = FILE_ORDER

    @property
    def site(self) -> "_Found":
        return self


@pytest.mark.parametrize("formed, placement, tried, best", [
    ((9.0, 8.0), None, ["row", None], 8.0),
    ((9.0, 9.5), None, ["row", None], 9.0),
    ((10.0, 8.0), None, ["row"], 10.0),
    ((9.0, 8.0), "row", ["row"], 9.0)])
def test_the_fastest_of_all_placements_that_were_tried(monkeypatch, formed, placement, tried, best):
    """In file order ``row`` is the fastest placement. A given placement is tried once."""
    seen = []

    def placed(point, memory, runs, below=inf):
        if point.workload.batching == "file":
            return _Found(point.changed(placement="row"), 10.0)
        seen.append(point.cluster.placement)
        return _Found(point, formed[len(seen) - 1])

    monkeypatch.setattr("sim.evaluation.compared.placed", placed)
    point = Point.named("fs", **SMALL, placement=placement)
    assert formed_best("fs", point).interval_us == best and seen == tried
