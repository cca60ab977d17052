"""Costs as stages: nothing is lost, everything is once."""

import pytest

from host.devices.cost import Cost
from host.devices.operation import Operation
from host.systems import Step, schedule
from host.systems.charge import charge, longest_us, operators, slowest
from tests.host.systems.simple import TUNED, devices


def total(step: Step, key) -> dict:
    found: dict = {}
    for stage in step.stages:
        for name in key(stage):
            found[name] = found.get(name, 0) + stage.us
    return found


def test_a_cost_becomes_its_overhead_its_work_and_its_resources():
    step = Step()
    last = charge(step, "x", "mlp", Cost(10, 4, {"cpu": 3, "gpu": 6, "link": 1}))
    assert last == len(step.stages) - 1 and longest_us(step) == 10
    assert total(step, lambda stage: [stage.phase]) == {"overhead": 4, "mlp": 6}
    assert total(step, lambda stage: stage.resources) == {"cpu": 3, "gpu": 6, "link": 1}
    # The host calls first; the link is needed last.
    assert step.stages[0].resources == ("cpu",) and "link" in step.stages[-1].resources


def test_nothing_is_a_point_where_paths_meet():
    step = Step()
    first = step.add("a", "mlp", 1)
    assert step.stages[charge(step, "x", "mlp", Cost(), (first,))].after == (first,)


def test_operators_hide_calls_behind_work():
    # Calls end at 10, 20, 30; the GPU begins 1 later; the first operator keeps it for 25 us.
    d = devices()
    long = Operation("long", kernels=12)  # of 2 us each
    parts = [("a", "mlp", [long]), ("b", "irregular", [Operation("b"), Operation("c")])]
    step = Step()
    operators(step, d.gpu, parts)
    assert longest_us(step) == d.gpu.run(long, Operation("b"), Operation("c")).us == 39
    phases = total(step, lambda stage: [stage.phase])
    assert phases == {"overhead": 11, "mlp": 24, "irregular": 4}
    assert total(step, lambda stage: stage.resources)["cpu"] == 30
    assert total(step, lambda stage: stage.resources)["gpu"] == 28


def test_one_graph_is_one_call():
    d, step = devices(software=TUNED), Step()
    operators(step, d.gpu, [("a", "mlp", [Operation("a")]), ("b", "mlp", [Operation("b")])])
    assert longest_us(step) == 6 + 1 + 2 + 2
    assert total(step, lambda stage: stage.resources)["cpu"] == 6


def test_the_slowest_node_counts():
    assert slowest([Cost(1), Cost(3, 1), Cost(2)]) == Cost(3, 1)
    assert slowest([]) == Cost()


def test_two_steps_share_what_they_hold():
    steps = []
    for _ in range(2):
        steps.append(Step())
        charge(steps[-1], "x", "mlp", Cost(10, 4, {"cpu": 4, "gpu": 6}))
    assert schedule(steps, 2).finished.tolist() == [10, 16]
    assert longest_us(Step()) == pytest.approx(0)
