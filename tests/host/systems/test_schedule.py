"""Times of steps in flight, against a dispatcher that steps through time."""

from collections import Counter
from collections.abc import Hashable
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.systems import PHASES, Part, Step, breakdown, schedule
from host.systems.charge import earliest_ends, longest_us

GPU, LINK = ("gpu", 0), ("link", 0)


def chain() -> Step:
    """Return a lookup, its way over a link, and an MLP on the same GPU."""
    step = Step()
    lookup = step.add("gather", "embedding_lookup", 3, GPU)
    sent = step.add("send", "embedding_all_to_all", 5, LINK, after=[lookup])
    step.add("mlp", "mlp", 4, GPU, after=[sent])
    return step


def test_one_step_alone():
    found = schedule([chain()])
    assert found.finished.tolist() == [12] and found.busy == {GPU: 7, LINK: 5}


def test_steps_in_flight_share_resources():
    found = schedule([chain(), chain(), chain()], in_flight=2)
    assert found.released.tolist() == [0, 0, 12]
    # The link serves the second step until 8 + 5, and an MLP of 4 us follows. It serves the third
    # step from 15, after its lookup.
    assert found.finished.tolist() == [12, 17, 24]


def test_a_resource_serves_parallel_stages_in_the_best_order():
    """The GPU runs the MLP first, because 20 us of exchange follow it."""
    step = Step()
    step.add("update", "mlp", 10, GPU)
    mlp = step.add("mlp", "mlp", 5, GPU)
    step.add("send", "all_reduce", 20, LINK, after=[mlp])
    assert schedule([step]).finished[0] == 25
    assert breakdown(step)["wait"] == 0
    step.add("more", "mlp", 12, GPU)
    assert schedule([step]).finished[0] == 27 and breakdown(step)["wait"] == 2


def test_parts_of_a_resource_are_held_at_once():
    step = Step()
    step.add("a", "mlp", 4, Part(GPU, 0.5))
    step.add("b", "mlp", 4, Part(GPU, 0.5))
    assert schedule([step]).finished[0] == 4
    step.add("c", "mlp", 2, Part(GPU, 0.25))
    found = schedule([step])
    assert found.finished[0] == 4.5 and found.busy == {GPU: 4.5}


def test_parts_of_a_resource_have_bounds():
    for share in (-0.1, 1.5):
        with pytest.raises(ValueError, match="shares of a must be above 0 and at most 1"):
            Step().add("a", "mlp", 1, Part(GPU, share))
    step = Step()
    step.add("a", "mlp", 1, Part(GPU, 0.0))
    assert step.stages[0].resources == ()


def test_work_behind_calls_is_no_overhead():
    step = Step()
    call = step.add("call", "overhead", 10, "cpu")
    step.add("kernel", "mlp", 4, "gpu", after=[call])
    later = step.add("call", "overhead", 10, "cpu", after=[call])
    step.add("kernel", "irregular", 2, "gpu", after=[later, 1])
    phases = breakdown(step)
    assert {name: us for name, us in phases.items() if us} == {
        "overhead": 16, "mlp": 4, "irregular": 2}


def test_arrivals():
    found = schedule([chain(), chain()], in_flight=4, arrivals=[1.5, 100])
    assert found.released.tolist() == [1.5, 100] and found.finished.tolist() == [13.5, 112]


def test_step_without_stages():
    assert schedule([Step(), chain(), Step()], in_flight=1).finished.tolist() == [0, 12, 12]
    assert sum(breakdown(Step()).values()) == 0


def test_breakdown_of_a_chain():
    phases = breakdown(chain())
    assert {name: us for name, us in phases.items() if us} == {
        "embedding_lookup": 3, "embedding_all_to_all": 5, "mlp": 4}
    assert set(phases) == set(PHASES)


@pytest.mark.parametrize(("make", "said"), [
    (lambda: Step().add("a", "nothing", 1), "phase must be one of"),
    (lambda: Step().add("a", "mlp", -1), "us of a must be at least 0, not -1"),
    (lambda: Step().add("a", "mlp", float("nan")), "us of a must be at least 0, not nan"),
    (lambda: Step().add("a", "mlp", 1, after=[0]), "after of a must be between"),
    (lambda: Step().add("a", "mlp", 1, GPU, GPU), "resources of a must differ"),
    (lambda: schedule([], in_flight=0), "in_flight must be at least 1, not 0"),
    (lambda: schedule([Step()], arrivals=[]), "arrivals must be 1 times"),
    (lambda: schedule([Step(), Step()], arrivals=[2, 1]), "in ascending order"),
])
def test_mistakes(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@st.composite
def graphs(draw) -> list[Step]:
    steps = []
    for _ in range(draw(st.integers(1, 5))):
        step = Step()
        for number in range(draw(st.integers(0, 6))):
            after = draw(st.sets(st.integers(0, number - 1))) if number else set()
            step.add(f"s{number}", draw(st.sampled_from(PHASES[:-1])), draw(st.integers(0, 5)),
                     *(Part(name, draw(st.sampled_from([0.25, 0.5, 1.0])))
                       for name in sorted(draw(st.sets(st.sampled_from("abc"))))),
                     after=sorted(after))
        steps.append(step)
    return steps


def walked(steps: list[Step], in_flight: int) -> list[list[int]]:
    """Return the start of each stage, in whole microseconds."""
    never = 1 << 30
    start = [[never] * len(step.stages) for step in steps]
    end = [[never] * len(step.stages) for step in steps]

    def over(step, now):
        return all(e <= now for e in end[step])

    released: list[int] = []
    for now in range(1000):
        used = Counter[Hashable]()
        for s, step in enumerate(steps):
            for n, stage in enumerate(step.stages):
                if start[s][n] <= now < end[s][n]:
                    used.update(dict(stage.uses))  # type: ignore[arg-type]
        moved = True
        while moved:
            moved = False
            while len(released) < len(steps) and (
                    len(released) < in_flight or over(len(released) - in_flight, now)):
                released.append(now)
            awaited: set[Hashable] = set()
            for s in range(len(released)):
                for n, stage in enumerate(steps[s].stages):
                    if start[s][n] != never or not all(
                            end[s][other] <= now for other in stage.after):
                        continue
                    short = [name for name, share in stage.uses if used[name] + share > 1]
                    awaited.update(short)
                    if not short and awaited.isdisjoint(stage.resources):
                        start[s][n], end[s][n] = now, now + stage.us
                        if stage.us:
                            used.update(dict(stage.uses))  # type: ignore[arg-type]
                        moved = True
                        break
                if moved:
                    break
        if len(released) == len(steps) and all(over(s, now) for s in range(len(steps))):
            break
    return start


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_a_step_alone_takes_what_its_chains_and_resources_need(steps):
    """A step takes its longest chain, or the most that a set of stages on one resource needs."""
    for step in steps:
        alone, ends = float(schedule([step]).finished[0]), earliest_ends(step)
        least = [longest_us(step)]
        for name in "abc":
            users = [(ends[n] - stage.us, dict(stage.uses)[name] * stage.us, behind(step, n))
                     for n, stage in enumerate(step.stages) if name in stage.resources]
            for count in range(1, len(users) + 1):
                least += [min(job[0] for job in jobs) + sum(job[1] for job in jobs)
                          + min(job[2] for job in jobs) for jobs in combinations(users, count)]
        assert alone == pytest.approx(max(least))
        assert sum(breakdown(step).values()) == pytest.approx(alone)


def behind(step: Step, number: int) -> float:
    """Return the longest chain behind a stage."""
    return max((stage.us + behind(step, later) for later, stage in enumerate(step.stages)
                if number in stage.after), default=0.0)


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(1, 3))
def test_no_dispatcher_is_faster_alone_or_for_all_steps(steps, in_flight):
    starts = walked(steps, in_flight)
    last = max((start + stage.us for step, times in zip(steps, starts)
                for start, stage in zip(times, step.stages)), default=0)
    found = schedule(steps, in_flight)
    assert max(found.busy.values(), default=0) <= last
    if in_flight == 1 or len(steps) == 1:
        assert found.finished[-1] <= last + 1e-9


@settings(max_examples=100, deadline=None)
@given(graphs(), st.integers(1, 3), st.integers(0, 30), st.sampled_from([0.1, 0.5, 0.9]))
def test_a_faster_stage_delays_no_step(steps, in_flight, place, factor):
    before = schedule(steps, in_flight).finished
    stages = [stage for step in steps for stage in step.stages]
    if stages:
        stages[place % len(stages)].us *= factor
    assert (schedule(steps, in_flight).finished <= before + 1e-9).all()
    assert (schedule(steps, in_flight + 1).finished <= before + 1e-9).all()
