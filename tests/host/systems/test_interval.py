"""Intervals in steady state: closed forms, and faster parts that never make an interval longer."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.calibrate.gpu.beside import half, taken_us
from host.devices.gpu_time import GpuTime
from host.devices.software import SoftwareProfile
from host.measurements.readings import h100_us
from host.systems import Part, Step, busy_us, schedule, steady_us
from host.systems.schedule import among_us
from host.timing.gpu import GpuProfile
from host.toml.profile import load_profile

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


def test_kernels_of_other_steps_delay_a_step_by_their_share_of_its_length():
    """A kernel of 8 us takes half of the GPU; 4 us of a step have no kernel."""
    one = step((4, None), (8, Part("gpu", 0.5)))
    for depth in (1, 2, 4, 16):
        length = depth * steady_us([one], depth)
        assert length == pytest.approx(12 + (depth - 1) * 4 * (length - 4) / length)
        # Steps in flight that start each other reach the same interval.
        finished = schedule([one] * 400, depth).finished
        assert (finished[-1] - finished[-201]) / 200 == pytest.approx(length / depth, rel=0.01)
    # Without another step, and without kernels, nothing is delayed.
    assert among_us(12, 8, 0) == 12 and among_us(12, 0, 5) == 12


@pytest.mark.parametrize("case", [f"{name}{form}" for name in ("kaggle.32", "kaggle.128",
                                                              "terabyte.512")
                                  for form in ("", ".tf32")])
def test_a_measured_step_in_flight_grows_by_the_same_time_with_each_other_step(case):
    """Lengths with 8 in flight follow from those alone and with 16, to 12 %. The busiest resource
    alone, or the length alone, is a quarter too short."""
    found, rest = h100_us(), 8.0
    like = case.replace("128", "32")  # a small graph takes the same time alone
    alone = found[f"en.{like}.tuned.1.alone_us"]
    for threads in (2, 4):
        last, middle = (found[f"threads.{case}.{depth}.{threads}_us"] for depth in (16, 8))
        taken = taken_us(alone, last, rest, 16)
        assert among_us(alone, alone - rest, 15 * taken) == pytest.approx(16 * last)
        assert among_us(alone, alone - rest, 7 * taken) / 8 == pytest.approx(middle, rel=0.12)
        assert max(alone / 8, last) < 0.93 * middle


@pytest.mark.parametrize("samples", [128, 2048])
def test_another_run_of_graphs_in_flight_agrees(samples):
    """Four graphs of a whole DLRM in flight, from their length alone and the model's kernels."""
    gpu = GpuTime(load_profile("gpu_h100", GpuProfile),
                  load_profile("software_tuned_h100", SoftwareProfile))
    taken = gpu.run(*half("kaggle", samples)).busy["gpu"]
    name = f"dlrm.kaggle.{samples}"
    alone = h100_us()[f"{name}.graphed_us"]
    assert among_us(alone, alone - 8, 3 * taken) / 4 == pytest.approx(
        h100_us()[f"{name}.interval_us"], rel=0.1)
