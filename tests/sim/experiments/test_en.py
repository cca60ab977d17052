"""EN at points: what its NICs see of a trace, what it chooses, options left out or alone."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from host.placement.once import sent_once
from host.systems import DELIVER, EnTuning, StepOptions, en, en_tunings
from host.systems.nic_times import NicTimes
from sim.experiments.figures.en import CHANGES, NOTHING, OPTIONS
from sim.experiments.figures.registry import exhibit
from sim.experiments.points.devices import devices_of
from sim.experiments.points.en_nic import deliveries, en_nic, least_times, nic_point
from sim.experiments.points.en_system import en_system
from sim.experiments.points.en_trace import copied_all, each_once, without_small
from sim.experiments.points.measure import measure
from sim.experiments.points.placing import plan_of
from sim.experiments.points.point import Point
from sim.experiments.points.setting import DEMO, Setting
from sim.experiments.points.timing import interval_us
from sim.experiments.points.trace import trace_of
from sim.experiments.points.workloads import Workloads
from sim.experiments.sweep.sweep import Outcome, Results
from tests.sim.experiments.measured import told

POINT = Point.named("en", dataset="avazu", software="tuned", mini_batch=32, warmup=2, measured=2)


def shares(samples, nodes: int):
    count = len(samples)
    sizes = [count // nodes + (node < count % nodes) for node in range(nodes)]
    ends = np.cumsum([0, *sizes])
    return [samples.slice(int(a), int(b)) for a, b in pairwise(ends)]


def test_a_key_is_sent_once_where_there_is_room():
    keys = np.array([5, 7, 5, 9, 7, 9, 5])
    assert sent_once(keys, 3).tolist() == [True, True, False, True, False, False, False]
    # The table holds 5 and 7: each 9 is sent.
    assert sent_once(keys, 2).tolist() == [True, True, False, True, False, True, False]
    assert sent_once(keys, 0).all() and not sent_once(keys[:0], 3).size


def test_nics_see_each_key_of_a_share_once_at_its_owner():
    trace = trace_of(POINT)
    plan = plan_of(POINT, trace)
    once = each_once(trace, plan, 4096)
    offsets = np.cumsum([0, *trace.model.rows])
    placed = plan_of(replace(POINT, placement="even"), once)
    for before, after in zip(trace.batches, once.batches, strict=True):
        for node, (own, seen) in enumerate(zip(shares(before.samples, plan.nodes),
                                               shares(after.samples, plan.nodes), strict=True)):
            for owner in range(plan.nodes):
                mine = plan.owner_of(own.tables, own.rows, node) == owner
                keys = offsets[own.tables[mine]] + own.rows[mine]
                _, first = np.unique(keys, return_index=True)
                wanted = keys[np.sort(first)]
                theirs = placed.owner_of(seen.tables, seen.rows, node) == owner
                assert seen.rows[theirs].tolist() == wanted.tolist()
    assert sum(len(batch.samples.rows) for batch in once.measured) == pytest.approx(sum(
        len(np.unique(share.keys)) for batch in trace.measured
        for share in shares(batch.samples, plan.nodes)))


def test_nics_see_no_key_of_a_copied_table():
    trace = trace_of(POINT)
    left = without_small(trace, 1000)
    large = [rows for rows in trace.model.rows if rows > 1000]
    assert list(left.model.rows) == large and left.changed
    for before, after in zip(trace.batches, left.batches, strict=True):
        kept = np.isin(before.samples.tables, [number for number, rows in enumerate(
            trace.model.rows) if rows > 1000])
        assert after.samples.rows.tolist() == before.samples.rows[kept].tolist()
    assert without_small(trace, 0) is trace
    assert copied_all(trace, 10**9) and not copied_all(trace, 10**6)


def test_nothing_that_en_may_choose_is_faster():
    trace, devices = trace_of(POINT), devices_of(POINT)
    work = Workloads(trace, plan_of(POINT, trace))
    found = en_system(POINT, trace, work, devices)

    def cost(tuning: EnTuning, depth: int) -> float:
        times = en_nic(POINT, trace, devices, tuning).times
        own = deliveries(POINT, trace, tuning.copied_rows)
        return interval_us([en(work.plain[0], devices, StepOptions(), times[0], own[0], tuning)],
                           depth)

    least = min(cost(tuning, depth) for depth in (4, 16) for tuning in en_tunings(False, {})
                if tuning.copied_rows in (0, 1000, 1_000_000))
    assert cost(found.tuning, found.built.in_flight) <= least * 1.001
    assert "EN is fastest with" in found.built.notes[0]
    fixed = replace(POINT, en=("deliver=pooled", "copied_rows=100", "ring=false"))
    assert en_system(fixed, trace, work, devices).tuning == EnTuning(
        ring=False, deliver="pooled", copied_rows=100)


@pytest.mark.parametrize("deliver", DELIVER)
def test_no_nic_is_faster_than_the_bound_of_the_search(deliver):
    trace, devices, tuning = trace_of(POINT), devices_of(POINT), EnTuning(deliver=deliver)
    times = en_nic(POINT, trace, devices, tuning).times[0]
    least = least_times(trace.model, tuning, deliveries(POINT, trace, 0)[0])
    assert least.interval_us <= times.interval_us and least.service_us <= times.service_us


def test_the_search_for_repeats_and_the_index_are_added():
    trace, devices = trace_of(POINT), devices_of(POINT)
    part = en_nic(POINT, trace, devices, EnTuning(copied_rows=100))
    assert any("analytical: NICs find repeats" in note for note in part.notes)
    of = deliveries(POINT, trace, 100)[0]
    assert 0 < of.vectors < of.slots
    assert part.times[0].interval_us >= of.slots * 4e-3 / 0.95
    assert nic_point(POINT, EnTuning()).settings == ("requester_merge=true",)
    larger = nic_point(replace(POINT, dataset="terabyte"), EnTuning()).settings
    assert "hold_vectors=2048" in larger


@pytest.mark.parametrize("workload", ["inference", "training"])
@pytest.mark.parametrize("given", [
    (), *(tuple(f"{name}={value}" for name, value in option.without.items())
          for option in OPTIONS), ("relaunch=true",),
    ("ring=false", "completion=false", "merge=false", "dense=false", "sizes=false")])
def test_every_option_left_out_is_measured(workload, given):
    if workload == "training" and given and given[0] in (
            "deliver=interaction", "relaunch=true", "copied_rows=0"):
        return
    point = replace(POINT, workload=workload, in_flight=1, en=given)
    found = measure(point)
    assert found["applicable"] and found["label"] == "EN"
    assert sum(found["phases_us"].values()) == pytest.approx(found["service_us"])
    assert {"cpu", "gpu", "gpu_memory", "nic", "pcie_in", "pcie_out", "link"} <= set(
        found["busy_us"])
    assert ("driver" in found["busy_us"]) == ("ring=false" in given)
    assert Point.of(found["point"]) == point


def test_the_table_has_each_option_alone_and_left_out():
    setting = replace(DEMO, datasets=("kaggle", "terabyte"))
    table = exhibit("en")
    points = table.points(setting)
    assert len(set(points)) == len(points) and {point.software for point in points} == {"tuned"}
    results = Results({point: Outcome(point, told(point)) for point in points})
    rows = table.rows(setting, results)
    systems = {row.system for row in rows if row.dataset == "terabyte"}
    for option in OPTIONS:
        assert {f"EN without {option.name}", f"nothing but {option.name}"} <= systems
    for name, _ in CHANGES:
        assert {f"EN, {name}, kernels L2", f"bl-tuned, {name}, kernels L3"} <= systems
    assert {f"EN, kernels L{level}" for level in range(4)} <= systems
    assert not [row for row in rows if row.dataset == "kaggle" and "larger buffers" in row.system]
    assert set(NOTHING) < set(vars(EnTuning()))
    assert all(row.value is not None for row in rows)
    assert table.points(Setting(softwares=("eager",))) == []


def test_a_slow_nic_is_what_binds():
    trace, devices = trace_of(POINT), devices_of(POINT)
    work = Workloads(trace, plan_of(POINT, trace))
    own = deliveries(POINT, trace, 0)[0]
    steps = [en(work.plain[0], devices, StepOptions(), NicTimes({"embedding_lookup": 90.0}, 80.0),
                own, EnTuning())]
    assert interval_us(steps, 4) == pytest.approx(80.0, rel=0.02)
