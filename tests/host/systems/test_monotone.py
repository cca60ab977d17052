"""A faster resource makes no interval longer and no step later: random systems and machines."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.systems import Part, Step, Way, in_graphs, schedule

RESOURCES = ("gpu", "gpu_memory", "nccl", "link", "pcie_in", "pcie_out", "driver", "nic")
SHARES = (0.1, 0.25, 0.5, 1.0)
WITHIN = 1.005


class Drawn(NamedTuple):
    """A stage: its latency, its work on each resource, the share that it holds of each, and the
    stages before it. ``more``: part of its work that a further mini-batch adds to a shared call;
    None for a stage that is no shared call."""

    latency: float
    work: dict[str, float]
    shares: dict[str, float]
    after: tuple[int, ...]
    more: float | None = None

    def us(self, speed: dict[str, float]) -> float:
        """Return the time: the slowest resource decides."""
        return self.latency + max(
            (work / speed.get(name, 1.0) for name, work in self.work.items()), default=0.0)


@st.composite
def stages(draw, before: int) -> Drawn:
    """A stage of random resources; ``before``: stages of its step so far."""
    used = draw(st.lists(st.sampled_from(RESOURCES), max_size=3, unique=True))
    return Drawn(draw(st.floats(0, 5)), {name: draw(st.floats(0, 10)) for name in used},
                 {name: draw(st.sampled_from(SHARES)) for name in used}, _after(draw, before))


def _after(draw, before: int) -> tuple[int, ...]:
    return tuple(sorted(draw(st.sets(st.integers(0, before - 1), max_size=3)))) if before else ()


@st.composite
def systems(draw) -> list[list[Drawn]]:
    """The mini-batches of a system: the same calls of a random number of host threads, and random
    stages between them."""
    calls, share = draw(st.integers(0, 3)), 1 / draw(st.integers(1, 2))
    steps = []
    for _ in range(draw(st.integers(1, 4))):
        own: list[Drawn] = []
        for call in range(calls + 1):
            for _ in range(draw(st.integers(0, 5))):
                own.append(draw(stages(len(own))))
            if call < calls:
                own.append(Drawn(0.0, {"cpu": draw(st.floats(0, 5))}, {"cpu": share},
                                 _after(draw, len(own)), draw(st.floats(0, 1))))
        steps.append(own)
    return steps


def built(system: list[list[Drawn]], speed: dict[str, float]) -> list[Step]:
    """Return the steps of a system on a machine; ``speed``: of each resource, 1 unless given."""
    steps = []
    for own in system:
        step, calls = Step(), 0
        for each in own:
            called = each.more is not None
            number = step.add(f"call {calls}" if called else "work", "mlp", each.us(speed), *(
                Part(name, share) for name, share in each.shares.items()), after=each.after)
            if each.more is not None:
                step.calls[number] = each.more * each.us(speed)
                calls += 1
        steps.append(step)
    return steps


SPEEDS = st.dictionaries(st.sampled_from(("cpu", *RESOURCES)), st.floats(1, 16), min_size=1)


def faster_makes_nothing_longer(system, depth: int, per_graph: int, speed) -> None:
    slow, fast = built(system, {}), built(system, speed)
    before = Way(slow).interval_us(depth, per_graph)
    assert Way(fast).interval_us(depth, per_graph) <= before * WITHIN + 1e-9
    assert Way(fast).least_us(depth, per_graph) <= Way(fast).interval_us(depth, per_graph)
    assert Way(slow).interval_us(2 * depth, per_graph) <= before * WITHIN + 1e-9
    graphs = [in_graphs(each, per_graph) * 3 for each in (slow, fast)]
    ends = [schedule(each, depth // per_graph).finished for each in graphs]
    assert (ends[1] <= ends[0] * WITHIN + 1e-9).all()


CASE = (systems(), st.integers(1, 16), st.sampled_from((1, 2, 4, 8)), SPEEDS)


@settings(max_examples=150, deadline=None)
@given(*CASE)
def test_faster_resources_make_no_interval_longer(system, depth, per_graph, speed):
    faster_makes_nothing_longer(system, max(depth, per_graph), per_graph, speed)


@pytest.mark.thorough
@settings(max_examples=1000, deadline=None)
@given(*CASE)
def test_faster_resources_make_no_interval_of_many_systems_longer(system, depth, per_graph, speed):
    faster_makes_nothing_longer(system, max(depth, per_graph), per_graph, speed)
