"""Traces that a process keeps, and results that live as long as their trace."""

import pytest

from host.once import once
from sim.evaluation import sweep
from sim.evaluation import trace as traces
from sim.evaluation.least import deliveries
from sim.evaluation.point import Point
from sim.evaluation.sweep import each
from sim.evaluation.trace import plan_of, tally_of, trace_of, without_small
from sim.evaluation.workloads import workloads

SMALL = {"nodes": 2, "mini_batch": 16, "warmup": 1, "measured": 2}


def small(seed: int = 1) -> Point:
    return Point.named("bl-tuned", **SMALL, seed=seed)


@pytest.fixture(autouse=True)
def _none_kept(monkeypatch):
    monkeypatch.setattr(traces, "_TRACES", {})


def test_the_traces_used_last_are_kept_up_to_a_number_of_keys(monkeypatch):
    first, second = (trace_of(small(seed).workload) for seed in (1, 2))
    monkeypatch.setattr(traces, "_KEPT_KEYS", 26 * 16 * 3 * 2)
    assert trace_of(small(1).workload) is first
    third = trace_of(small(3).workload)
    assert [*traces._TRACES.values()] == [first, third]
    assert trace_of(small(2).workload) is not second
    monkeypatch.setattr(traces, "_KEPT_KEYS", 1)  # a trace above the limit is kept alone
    trace_of(small(4).workload)
    assert len(traces._TRACES) == 1


def test_a_result_is_computed_once_for_each_trace_and_its_arguments():
    asked = []

    @once
    def of(trace, number):
        asked.append((trace, number))
        return number + 1

    one, other = trace_of(small(1).workload), trace_of(small(2).workload)
    assert [of(one, 1), of(one, 1), of(one, 2), of(other, 1)] == [2, 2, 3, 2]
    assert asked == [(one, 1), (one, 2), (other, 1)]


def test_placements_and_deliveries_share_the_counts_of_a_mini_batch(monkeypatch):
    point = small()
    trace, counted = trace_of(point.workload), []
    monkeypatch.setattr(traces.Tally, "_counted",
                        lambda own, owners, of=traces.Tally._counted: counted.append(
                            owners) or of(own, owners))
    work = workloads(trace, plan_of(point, trace))
    for rows in (0, 100, 10_000):
        assert len(work.copied(rows)) == 2
        assert deliveries(point, trace, rows)[0].most("slots") > 0
    assert counted == [1, 1] and tally_of(trace, 0, 2) is tally_of(trace, 0, 2)


def test_a_plan_without_small_tables_is_that_of_the_trace_without_them():
    for placement in ("even", "rows", "lookups"):
        point = small().changed(placement=placement)
        trace = trace_of(point.workload)
        assert plan_of(point, trace, 1000) == plan_of(point, without_small(trace, 1000))


def _limit(_: int) -> int:
    from joblib.externals.loky import process_executor

    return process_executor._MAX_MEMORY_LEAK_SIZE


@pytest.mark.thorough
def test_workers_keep_their_traces():
    assert [limit for _, limit in each(_limit, [1, 2], jobs=2)] == [sweep._MOST_CACHED] * 2
