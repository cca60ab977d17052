"""Choices of systems: no allowed choice is faster, in file order and with GA."""

import pytest

from host.systems import (
    Devices,
    StepOptions,
    Tuning,
    best,
    bl_paper,
    bl_tuned,
    every,
    tuning_variants,
)
from sim.evaluation.built import Built, Choice, interval_us
from sim.evaluation.fields import DEPTHS
from sim.evaluation.point import Point
from sim.evaluation.site import Site
from sim.evaluation.workloads import Workloads


def chosen(point: Point) -> tuple[Workloads, Devices, StepOptions, Built]:
    site = Site.of(point)
    return site.work, site.devices, StepOptions(site.training), point.kind.at(site)[0]


@pytest.mark.thorough
@pytest.mark.parametrize("dataset, workload, software, fields", [
    ("kaggle", "inference", "eager", {"in_flight": 4}),
    ("kaggle", "inference", "tuned", {"in_flight": 8, "per_graph": None}),
    ("kaggle", "inference", "tuned_h100", {"in_flight": 16, "per_graph": 2, "rdma": True}),
    ("kaggle", "training", "tuned", {}), ("terabyte", "inference", "tuned", {"in_flight": 16})])
def test_no_combination_of_options_is_faster(dataset, workload, software, fields):
    """The local search finds the least of all combinations, within 1 %."""
    point = Point.named("bl-tuned", dataset=dataset, workload=workload, software=software,
                        warmup=0, measured=2, **fields)
    search = point.kind.search(Site.of(point), None)
    found = search.best()
    choices = [Choice((flight,), tuning) for flight in point.flights
               for tuning in every(Tuning(), search.variants, point.workload.training)
               if search.allows(tuning, *flight)]
    least = search.whole(best(choices, search._bound, search._cost)).interval_us
    assert least <= found.interval_us * (1 + 1e-9) <= least * 1.01
    assert found.in_flight in point.depths


@pytest.mark.thorough
def test_behind_the_graph_algorithm_the_choice_suits_all_mini_batches():
    """The first mini-batch of a window has few unique keys, the last ones many."""
    point = Point.named("ga+bl-tuned", dataset="terabyte", software="tuned", mini_batch=2048,
                        window=8 * 2048, warmup=0, measured=8)
    work, devices, options, found = chosen(point)

    def interval(tuning: Tuning, depth: int) -> float:
        return interval_us([bl_tuned(w, devices, options, tuning)
                            for w in work.copied(tuning.copied_rows)], depth)

    us = found.way.interval_us(found.in_flight, found.per_graph)  # without the time of forming
    assert us <= 1.01 * min(interval(tuning, depth) for depth in (4, 8, 16)
                            for tuning in every(Tuning(), tuning_variants(False)))


def test_a_systems_own_depth_is_the_least_of_the_fastest():
    point = Point.named("bl-paper", warmup=0, measured=4)
    work, devices, options, found = chosen(point)
    each = {depth: interval_us([bl_paper(w, devices, options) for w in work.plain], depth)
            for depth in DEPTHS}
    assert found.in_flight == min(depth for depth in DEPTHS
                                  if each[depth] <= min(each.values()) + 1e-6)
    assert chosen(point.changed(in_flight=3))[3].in_flight == 3


def test_gradients_are_summed_by_the_faster_library():
    """With eager software the faster library is NCCL, which needs no copies to the hosts."""
    point = Point.named("bl-paper", workload="training", warmup=0, measured=2)
    work, devices, options, found = chosen(point)
    mpi = [bl_paper(w, devices, options) for w in work.plain]
    assert found.interval_us < interval_us(mpi, 1)
    assert any("nccl" in stage.resources for stage in found.steps[0].stages)
