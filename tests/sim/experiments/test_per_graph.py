"""Several mini-batches in a graph: which systems may use them, and their effect at a point."""


import pytest

from sim.evaluation.built import interval_us
from sim.evaluation.fields import DEPTHS, PER_GRAPH, devices_of
from sim.evaluation.measure import busy_us, measure
from sim.evaluation.point import Point
from sim.evaluation.setting import DEMO
from sim.evaluation.site import Site
from sim.experiments.figures.registry import exhibit
from sim.serving.measured import point_of

FEW = {"software": "tuned", "warmup": 2, "measured": 4}


def tuned(dataset: str, **fields) -> tuple:
    point = Point.named("bl-tuned", dataset=dataset, **FEW | fields)
    return point.kind.at(Site.of(point))[0], devices_of(point.cluster)


def test_who_may_have_several_mini_batches_in_a_graph():
    every = Point.named("fs", software="tuned", per_graph=None)
    assert every.flights == tuple((depth, size) for depth in DEPTHS for size in PER_GRAPH
                                  if size <= depth)
    assert every.changed(in_flight=3).flights == ((3, 1), (3, 2))
    for system, fields in (("fs", {"software": "eager"}), ("fs", {"workload": "training"}),
                           ("bl-paper", {}), ("all-on-nic", {}), ("cpu-mpi", {})):
        point = Point.named(system, **{"software": "tuned", "per_graph": None} | fields)
        assert {size for _, size in point.flights} == {1}
        with pytest.raises(ValueError, match="per_graph must be at most 1 here, not 2"):
            point.changed(per_graph=2)
    with pytest.raises(ValueError, match="per_graph must be at most 4 here, not 8"):
        every.changed(in_flight=4, per_graph=8)
    with pytest.raises(ValueError, match="per_graph must be at least 1, not 0"):
        every.changed(per_graph=0)


@pytest.mark.thorough
@pytest.mark.parametrize("dataset, fixed", [
    ("avazu", ()), ("kaggle", ()), ("kaggle", ("one_collective=false", "communicators=1"))])
def test_the_choice_makes_no_baseline_slower(dataset, fixed):
    chosen, _ = tuned(dataset, fixed=fixed, per_graph=None)
    single, _ = tuned(dataset, fixed=fixed)
    assert chosen.interval_us <= single.interval_us + 1e-6
    assert single.per_graph == 1
    assert single.interval_us == interval_us(single.steps, single.in_flight)


def test_the_thread_of_the_full_system_rings_launches_and_waits_once_for_four(monkeypatch):
    monkeypatch.setattr("sim.evaluation.smart_nic.PACES", ())
    one, four = (measure(Point.named("fs", **FEW, in_flight=16, per_graph=count, pace_us=8,
                                     fixed=("pool=requester",)))
                 for count in (1, 4))
    software = devices_of(Point.named("fs", **FEW).cluster).software
    calls = 2 * (software.doorbell_us + software.graph_us) + 3 * software.synchronize_us
    assert one["busy_us"]["cpu"] == pytest.approx(calls)
    assert four["busy_us"]["cpu"] == pytest.approx((calls + 3 * 2 * software.graph_us) / 4)
    assert four["interval_us"] < one["interval_us"]
    # A mini-batch alone, and a request, do not change: each is launched as a single graph.
    assert (one["per_graph"], four["per_graph"]) == (1, 4)
    for metric in ("service_us", "request_us", "phases_us", "nic_us", "traffic"):
        assert four[metric] == one[metric]
    assert {name: us for name, us in four["busy_us"].items() if name != "cpu"} == pytest.approx(
        {name: us for name, us in one["busy_us"].items() if name != "cpu"})


def test_a_mini_batch_that_is_alone_in_flight_is_a_graph():
    found, _ = tuned("kaggle", in_flight=1, per_graph=None)
    assert (found.in_flight, found.per_graph) == (1, 1)
    assert busy_us(found.steps, found.per_graph) == busy_us(found.steps)


def test_a_mini_batch_is_a_graph_unless_a_point_says_otherwise():
    assert Point.named("bl-paper").system.per_graph == 1
    assert {point.system.per_graph for point in exhibit("en").points(DEMO)} == {None, 1}


def test_requests_are_served_by_graphs_of_one_mini_batch():
    for system in ("en", "fs", "bl-tuned", "bl-paper"):
        assert point_of(64, False, system=system, software="tuned").system.per_graph == 1


def test_measured_software_has_graphs_of_several_if_its_profile_has_graphs():
    for software, most in (("tuned", 16), ("tuned_h100", 16), ("eager", 1), ("eager_h100", 1)):
        point = Point.named("en", software=software, gpu="gpu_h100", per_graph=None)
        assert point.most_per_graph == most
