"""Intervals and lower bounds of a way, against graphs that are built."""

import pytest

from host.systems import Part, Step, StepOptions, Tuning, Way, bl_tuned, in_graphs, steady_us
from host.systems import way as module
from tests.host.systems.simple import TUNED, devices, workload

FLIGHTS = [(depth, count) for depth in (1, 2, 4, 8, 16) for count in (1, 2, 4, 8) if count <= depth]


def tuned(threads: int, **changed) -> list[Step]:
    return [bl_tuned(workload(rows=rows), devices(software=TUNED), StepOptions(),
                     Tuning(threads=threads, copied_rows=0, **changed))
            for rows in (((1, 2), (1, 3), (4, 2), (1, 2)), ((1, 2), (1, 2), (1, 2), (1, 2)))]


def made(us: float, call: float, more: float) -> Step:
    """Return a step with a shared call, and parallel stages on two resources."""
    step = Step()
    called = step.add("call", "overhead", call, "cpu")
    step.calls[called] = more
    both = [step.add("kernel", "mlp", part * us, Part("gpu", 0.4), "link", after=[called])
            for part in (1, 2)]
    step.add("end", "mlp", us, "gpu", after=both)
    return step


@pytest.mark.parametrize("steps", [
    *(tuned(threads, exchange=exchange) for threads in (1, 2) for exchange in ("nccl", "gpu")),
    tuned(1, one_collective=True), [made(3, 2, 1), made(1, 5, 0)], [made(1, 5, 0), made(3, 2, 1)]])
def test_an_interval_is_that_of_its_graphs_and_no_shorter_than_the_bound(steps):
    for each in (steps, steps[:1]):
        way = Way(each)
        for depth, count in FLIGHTS:
            exact = steady_us(in_graphs(each, count), depth // count) / count
            assert way.interval_us(depth, count) == exact
            assert 0.3 * exact < way.least_us(depth, count) < exact
        assert way.least_us(1) == pytest.approx(way.interval_us(1))


def test_graphs_are_built_once_for_all_depths_and_not_for_the_bound(monkeypatch):
    built = []
    monkeypatch.setattr(module, "in_graphs",
                        lambda steps, count: built.append(count) or in_graphs(steps, count))
    way = Way(tuned(1))
    for flight in FLIGHTS:
        way.least_us(*flight)
    assert not built
    for flight in FLIGHTS:
        way.interval_us(*flight)
    assert built == [1, 2, 4, 8]
