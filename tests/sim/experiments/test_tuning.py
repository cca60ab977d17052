"""What bl-tuned chooses: nothing that it may do is faster, in file order and in that of GA."""

from itertools import product

import pytest

from host.systems import COPIED_ROWS, Devices, StepOptions, Tuning, bl_tuned
from sim.experiments.points.placing import plan_of
from sim.experiments.points.point import Point
from sim.experiments.points.steps import Workloads, chosen_tuning
from sim.experiments.points.timing import interval_us
from sim.experiments.points.trace import trace_of


def chosen(point: Point) -> tuple[Workloads, Devices, StepOptions, Tuning]:
    trace = trace_of(point)
    work = Workloads(trace, plan_of(point, trace))
    devices = Devices.load(point.nodes, point.software, point.gpu, (), point.kernels)
    options = StepOptions(point.workload == "training")
    return work, devices, options, chosen_tuning(work, devices, options, point.depth)


@pytest.mark.parametrize("dataset, workload, software, depth", [
    ("kaggle", "inference", "eager", 4), ("kaggle", "inference", "tuned", 4),
    ("kaggle", "training", "tuned", 1), ("terabyte", "inference", "tuned", 4),
    ("terabyte", "inference", "tuned", 8), ("terabyte", "inference", "tuned", 16)])
def test_no_combination_of_options_is_faster(dataset, workload, software, depth):
    point = Point.named("bl-tuned", dataset=dataset, workload=workload, software=software,
                        warmup=0, measured=2, in_flight=depth)
    work, devices, options, found = chosen(point)

    def cost(tuning: Tuning) -> float:
        w = work.one_copied(tuning.copied_rows, 0)
        return interval_us([bl_tuned(w, devices, options, tuning)] * (point.depth + 2),
                           point.depth)

    every = [Tuning(*options) for options in product(*[(False, True)] * 5, COPIED_ROWS)]
    assert found in every
    assert cost(found) == min(map(cost, every))


def test_behind_the_graph_algorithm_the_choice_suits_all_mini_batches():
    """Its first mini-batch of a window has few different keys, its last ones many."""
    point = Point.named("ga+bl-tuned", dataset="terabyte", software="tuned", mini_batch=2048,
                        window=8 * 2048, warmup=0, measured=8)
    work, devices, options, found = chosen(point)

    def interval(tuning: Tuning) -> float:
        return interval_us([bl_tuned(w, devices, options, tuning)
                            for w in work.copied(tuning.copied_rows)], point.depth)

    assert all(interval(found) <= interval(other) for other in found.neighbours())
