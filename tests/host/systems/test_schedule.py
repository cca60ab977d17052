"""Schedules of stages over resources, against a scheduler that steps through time."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.systems import PHASES, Step, breakdown, schedule

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
    assert found.start[0].tolist() == [0, 3, 8] and found.end[0].tolist() == [3, 8, 12]
    assert found.finished.tolist() == [12] and found.busy == {GPU: 7, LINK: 5}


def test_steps_in_flight_share_resources():
    found = schedule([chain(), chain(), chain()], in_flight=2)
    assert found.released.tolist() == [0, 0, 12]
    assert found.start[2].tolist() == [12, 15, 20]
    # Its MLP is ready at 13, when the gather of step 2 has the GPU: nothing is reserved.
    assert found.start[1].tolist() == [3, 8, 15]
    assert found.held[1] == [(0, 0), (0, 1), (2, 0)]


def test_earlier_steps_go_first():
    late, early = Step(), Step()
    early.add("wait", "overhead", 2)
    early.add("mlp", "mlp", 5, GPU, after=[0])
    late.add("wait", "overhead", 2)
    late.add("mlp", "mlp", 1, GPU, after=[0])
    found = schedule([early, late], in_flight=2)
    assert found.start[0][1] == 2 and found.start[1][1] == 7


def test_a_stage_holds_all_its_resources():
    step = Step()
    step.add("copy", "overhead", 4, GPU, LINK)
    step.add("mlp", "mlp", 1, GPU)
    step.add("send", "input_all_to_all", 2, LINK)
    found = schedule([step])
    assert found.start[0].tolist() == [0, 4, 4]


def test_arrivals():
    found = schedule([chain(), chain()], in_flight=4, arrivals=[1.5, 100])
    assert found.released.tolist() == [1.5, 100] and found.finished.tolist() == [13.5, 112]


def test_step_without_stages():
    found = schedule([Step(), chain(), Step()], in_flight=1)
    assert found.finished.tolist() == [0, 12, 12]
    assert sum(breakdown(Step(), found, 0).phases.values()) == 0


def test_breakdown_of_a_chain():
    steps = [chain(), chain()]
    found = schedule(steps, in_flight=2)
    phases = breakdown(steps[1], found, 1).phases
    assert {name: us for name, us in phases.items() if us} == {
        "embedding_lookup": 3, "embedding_all_to_all": 5, "mlp": 4, "wait": 5}
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
                     *draw(st.sets(st.sampled_from("abc"))), after=sorted(after))
        steps.append(step)
    return steps


def walked(steps: list[Step], in_flight: int) -> list[list[int]]:
    """Return when each stage starts: whole microseconds, one after the other."""
    never = 1 << 30
    start = [[never] * len(step.stages) for step in steps]
    end = [[never] * len(step.stages) for step in steps]

    def over(step, now):
        return all(e <= now for e in end[step])

    released: list[int] = []
    for now in range(1000):
        free_until = {}
        for s, step in enumerate(steps):
            for n, stage in enumerate(step.stages):
                if start[s][n] <= now < end[s][n]:
                    free_until |= dict.fromkeys(stage.resources)
        moved = True
        while moved:
            moved = False
            while len(released) < len(steps) and (
                    len(released) < in_flight or over(len(released) - in_flight, now)):
                released.append(now)
            for s in range(len(released)):
                for n, stage in enumerate(steps[s].stages):
                    if start[s][n] == never and all(
                            end[s][other] <= now for other in stage.after) and not any(
                            name in free_until for name in stage.resources):
                        start[s][n], end[s][n] = now, now + stage.us
                        if stage.us:
                            free_until |= dict.fromkeys(stage.resources)
                        moved = True
                        break
                if moved:
                    break
        if len(released) == len(steps) and all(over(s, now) for s in range(len(steps))):
            break
    return start


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(1, 3))
def test_any_graph(steps, in_flight):
    found = schedule(steps, in_flight)
    assert [times.tolist() for times in found.start] == walked(steps, in_flight)
    for number, step in enumerate(steps):
        whole = breakdown(step, found, number).phases
        assert sum(whole.values()) == found.finished[number] - found.released[number]
        for n, held in enumerate(found.held[number]):
            waited = found.start[number][n] - found.ready[number][n]
            assert (held is None) == (waited == 0)
    for resource, busy in found.busy.items():
        spans = sorted((found.start[s][n], found.end[s][n]) for s, step in enumerate(steps)
                       for n, stage in enumerate(step.stages)
                       if resource in stage.resources and stage.us)
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
        assert busy == sum(b - a for a, b in spans)
    assert np.isfinite(found.finished).all()
