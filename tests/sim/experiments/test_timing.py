"""The time from one step to the next does not depend on the number of steps."""

import pytest

from host.systems import Part, Step
from sim.evaluation.built import interval_us


def step(*stages: tuple[float, object]) -> Step:
    """Return consecutive stages: time and resource."""
    made, at = Step(), ()
    for us, resource in stages:
        at = (made.add("s", "mlp", us, *([resource] if resource else []), after=at),)
    return made


@pytest.mark.parametrize("in_flight, us", [(1, 50), (2, 25), (4, 12.5), (8, 6.25), (16, 4)])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 32])
def test_an_interval_is_that_of_latency_or_of_what_is_busiest(in_flight, us, count):
    steps = [step((4, "cpu"), (20, None), (1, Part("nic", 0.5)), (25, None))] * count
    assert interval_us(steps, in_flight) == pytest.approx(us)


@pytest.mark.parametrize("in_flight", [1, 2, 4, 8, 16])
def test_steps_that_differ_are_not_slower_than_each_resource_allows(in_flight):
    """One step needs the host for 10 us and the next the NIC: 5 us each in parallel."""
    steps = [step((10, "cpu")), step((10, "nic"))]
    assert interval_us(steps, in_flight) == (10 if in_flight == 1 else 5)

