"""Costs as stages: every cost appears exactly once."""

import pytest

from host.devices.cost import Cost
from host.systems import Step, schedule
from host.systems.charge import charge, longest_us


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
    # The host calls first; the link is used last.
    assert step.stages[0].resources == ("cpu",) and "link" in step.stages[-1].resources


def test_nothing_is_a_point_where_paths_meet():
    step = Step()
    first = step.add("a", "mlp", 1)
    assert step.stages[charge(step, "x", "mlp", Cost(), (first,))].after == (first,)


def test_two_steps_share_what_they_hold():
    steps = []
    for _ in range(2):
        steps.append(Step())
        charge(steps[-1], "x", "mlp", Cost(10, 4, {"cpu": 4, "gpu": 6}))
    assert schedule(steps, 2).finished.tolist() == [10, 16]
    assert longest_us(Step()) == pytest.approx(0)
