"""What systems choose: nothing that they may do is faster, in file order and in that of GA."""

from functools import cache

import pytest

from host.systems import Devices, Step, StepOptions, Tuning, bl_paper, bl_tuned, tunings
from sim.evaluation.fields import DEPTHS
from sim.evaluation.point import Point
from sim.evaluation.search import Built, Site, interval_us
from sim.evaluation.workloads import Workloads


def chosen(point: Point) -> tuple[Workloads, Devices, StepOptions, Built]:
    site = Site.of(point)
    return site.work, site.devices, StepOptions(site.training), point.kind.at(site)[0]


@pytest.mark.thorough
@pytest.mark.parametrize("dataset, workload, software, fields", [
    ("kaggle", "inference", "eager", {}), ("kaggle", "inference", "tuned", {}),
    ("kaggle", "inference", "tuned", {"in_flight": 8, "per_graph": None}),
    ("kaggle", "training", "tuned", {"per_graph": None}), ("terabyte", "inference", "tuned", {})])
def test_no_combination_of_options_is_faster(dataset, workload, software, fields):
    point = Point.named("bl-tuned", dataset=dataset, workload=workload, software=software,
                        warmup=0, measured=2, **fields)
    work, devices, options, found = chosen(point)

    @cache
    def step(tuning: Tuning) -> Step:
        return bl_tuned(work.one_copied(tuning.copied_rows, 0), devices, options, tuning)

    def cost(flight: tuple[int, int], tuning: Tuning) -> float:
        return interval_us([step(tuning)], *flight)

    assert found.tuning is not None and found.in_flight in point.depths
    if "in_flight" not in fields:
        assert point.depths == (DEPTHS if workload == "inference" else (1,))
    every = {(flight, tuning): cost(flight, tuning) for flight in point.flights
             for tuning in tunings(options.training)}
    # All mini-batches decide between the best of all, and the best of a graph each.
    single = min(us for ((_, count), _), us in every.items() if count == 1)
    own = every[(found.in_flight, found.per_graph), found.tuning]
    assert own == pytest.approx(min(every.values()), abs=1e-6) or (
        point.system.per_graph is None and own == pytest.approx(single, abs=1e-6))


@pytest.mark.thorough
def test_behind_the_graph_algorithm_the_choice_suits_all_mini_batches():
    """Its first mini-batch of a window has few different keys, its last ones many."""
    point = Point.named("ga+bl-tuned", dataset="terabyte", software="tuned", mini_batch=2048,
                        window=8 * 2048, warmup=0, measured=8)
    work, devices, options, found = chosen(point)

    def interval(tuning: Tuning, depth: int) -> float:
        return interval_us([bl_tuned(w, devices, options, tuning)
                            for w in work.copied(tuning.copied_rows)], depth)

    assert found.interval_us <= 1.01 * min(interval(tuning, depth) for depth in (4, 8, 16)
                                           for tuning in tunings(False))


def test_a_systems_own_depth_is_the_least_of_the_fastest():
    point = Point.named("bl-paper", warmup=0, measured=4)
    work, devices, options, found = chosen(point)
    each = {depth: interval_us([bl_paper(w, devices, options) for w in work.plain], depth)
            for depth in DEPTHS}
    assert found.in_flight == min(depth for depth in DEPTHS
                                  if each[depth] <= min(each.values()) + 1e-6)
    assert chosen(point.changed(in_flight=3))[3].in_flight == 3


def test_gradients_are_summed_by_the_faster_library():
    """With eager software that is NCCL, which needs no copies to the hosts."""
    point = Point.named("bl-paper", workload="training", warmup=0, measured=2)
    work, devices, options, found = chosen(point)
    mpi = [bl_paper(w, devices, options) for w in work.plain]
    assert found.interval_us < interval_us(mpi, 1)
    assert any("nccl" in stage.resources for stage in found.steps[0].stages)
