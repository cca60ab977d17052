"""Intervals in steady state: closed forms, and faster parts that never make an interval longer."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.systems import Part, Step, busy_us, schedule, steady_us

NAMES = ("cpu", "gpu", "nccl", "link")


def step(*stages: tuple[float, object]) -> Step:
    """Return consecutive stages: time and resource."""
    made, at = Step(), ()
    for us, resource in stages:
        at = (made.add("s", "mlp", us, *([resource] if resource else []), after=at),)
    return made


def test_the_longer_of_latency_and_bottleneck():
    found = step((2, "cpu"), (30, None), (4, "cpu"), (24, None))
    assert [steady_us([found], depth) for depth in (1, 2, 8, 16)] == [60, 30, 7.5, 6]
    # Two threads, each for half of the steps.
    pair = step((2, Part("cpu", 0.5)), (30, None), (4, Part("cpu", 0.5)), (24, None))
    assert [steady_us([pair], depth) for depth in (16, 32)] == [3.75, 3]


def test_branches_of_a_step_share_its_resources():
    """Four branches of 10 us on one communicator, each with 5 us before and 15 us behind it."""
    found = Step()
    for _ in range(4):
        begun = found.add("a", "mlp", 5)
        called = found.add("b", "embedding_all_to_all", 10, "nccl", after=[begun])
        found.add("c", "mlp", 15, after=[called])
    assert [steady_us([found], depth) for depth in (1, 2)] == [60, 40]


def test_steps_count_as_often_as_they_occur():
    short, long = step((10, "gpu")), step((30, "gpu"))
    assert steady_us([short, short, long], 4) == pytest.approx(50 / 3)
    assert steady_us([Step()], 2) == 0


@st.composite
def systems(draw) -> list[Step]:
    """Return one to three steps of up to eight stages with random resources and shares."""
    steps = []
    for _ in range(draw(st.integers(1, 3))):
        made = Step()
        for number in range(draw(st.integers(1, 8))):
            after = draw(st.sets(st.integers(0, number - 1), max_size=2)) if number else set()
            made.add("s", "mlp", draw(st.floats(0.01, 50)),
                     *(Part(name, draw(st.sampled_from([0.1, 0.25, 0.5, 0.7, 1.0])))
                       for name in sorted(draw(st.sets(st.sampled_from(NAMES), max_size=2)))),
                     after=sorted(after))
        steps.append(made)
    return steps


def changed(steps: list[Step], change: Callable) -> list[Step]:
    """Return copies of the steps with ``change(step, stage)`` as the new (us, shares)."""
    found = []
    for at, old in enumerate(steps):
        new = Step()
        for number, stage in enumerate(old.stages):
            us, shares = change((at, number), stage)
            new.add(stage.name, stage.phase, us, *map(Part, stage.resources, shares),
                    after=stage.after)
        found.append(new)
    return found


@settings(max_examples=150, deadline=None)
@given(systems(), st.integers(1, 16), st.sampled_from(NAMES), st.integers(0, 23),
       st.floats(0.05, 0.99))
def test_faster_parts_never_make_an_interval_longer(steps, depth, resource, place, factor):
    base = steady_us(steps, depth)
    assert base >= max(busy_us(steps).values(), default=0.0) / len(steps) * (1 - 1e-9)
    assert steady_us(steps, depth + 1) <= base * (1 + 1e-6)
    places = [(at, n) for at, each in enumerate(steps) for n in range(len(each.stages))]
    one = places[place % len(places)]
    for change in (
            lambda where, stage: (stage.us * (factor if resource in stage.resources else 1),
                                  stage.shares),
            lambda where, stage: (stage.us * (factor if where == one else 1), stage.shares),
            lambda where, stage: (stage.us, tuple(
                share * (factor if name == resource else 1)
                for name, share in zip(stage.resources, stage.shares)))):
        assert steady_us(changed(steps, change), depth) <= base * (1 + 1e-6)


@settings(max_examples=60, deadline=None)
@given(systems(), st.integers(1, 4))
def test_an_interval_is_no_shorter_than_the_bound_and_alone_that_of_the_steps(steps, depth):
    assert steady_us(steps, 1) == pytest.approx(
        max(sum(float(schedule([each]).finished[0]) for each in steps), *busy_us(
            steps).values(), 0) / len(steps))
    assert steady_us(steps, 1000) >= max(busy_us(steps).values(), default=0) / len(steps) - 1e-9
