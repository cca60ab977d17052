"""Schedules of stages over resources, against a scheduler that steps through time."""

from collections import Counter
from collections.abc import Hashable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.systems import PHASES, Part, Step, breakdown, schedule

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
    # Its MLP is ready at 13, while the gather of step 2 uses the GPU: no resource is reserved.
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


def test_shares_of_a_resource_are_held_at_once():
    step = Step()
    step.add("a", "mlp", 4, Part(GPU, 0.5))
    step.add("b", "mlp", 4, Part(GPU, 0.5))
    step.add("c", "mlp", 2, Part(GPU, 0.25))
    found = schedule([step])
    assert found.start[0].tolist() == [0, 0, 4] and found.busy == {GPU: 4.5}


def test_small_shares_do_not_keep_a_large_one_waiting():
    large, small = Step(), Step()
    large.add("a", "mlp", 3, Part(GPU, 0.5))
    large.add("b", "mlp", 3, GPU, after=[0])
    for number in range(5):
        small.add("c", "mlp", 2, Part(GPU, 0.5), after=[number - 1] if number else [])
    found = schedule([large, small], in_flight=2)
    # At 3 the large stage is ready, with half of the GPU in use until 4; the rest is reserved for
    # it.
    assert found.start[0].tolist() == [0, 4] and found.start[1].tolist() == [0, 2, 7, 9, 11]


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
    phases = breakdown(step, schedule([step]), 0).phases
    assert {name: us for name, us in phases.items() if us} == {
        "overhead": 16, "mlp": 4, "irregular": 2}


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


def test_a_resource_is_kept_for_one_that_a_later_stage_left_too_little_for():
    """An earlier step waits for a and for all of b. A later step takes a quarter of b, and its next
    stage must leave the rest of b to the earlier step."""
    early, late = Step(), Step()
    early.add("a", "mlp", 1, "a")
    early.add("both", "mlp", 2, "a", "b")
    late.add("some", "mlp", 3, Part("b", 0.25))
    late.add("more", "mlp", 3, Part("b", 0.25))
    found = schedule([early, late], 2)
    assert [times.tolist() for times in found.start] == [[0, 3], [0, 5]] == walked([early, late], 2)


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
        spans = [(found.start[s][n], found.end[s][n], dict(stage.uses)[resource])
                 for s, step in enumerate(steps) for n, stage in enumerate(step.stages)
                 if resource in stage.resources and stage.us]
        for now in {begin for begin, _, _ in spans}:
            assert sum(share for begin, end, share in spans if begin <= now < end) <= 1
        assert busy == sum(share * (end - begin) for begin, end, share in spans)
    assert np.isfinite(found.finished).all()
