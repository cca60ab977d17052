"""Points measured on the model of the NIC: small traces, every system."""

import os
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from host.placement.deal import PLACEMENTS
from host.placement.shard import ShardPlan
from host.systems import Devices, Step, Way, schedule
from sim.evaluation import trace as trace_module
from sim.evaluation.built import Built, interval_us
from sim.evaluation.forming import Forming
from sim.evaluation.gradient_path import trained
from sim.evaluation.measure import alone, busy_us, measure, request_us
from sim.evaluation.nic_options import cache_rows, options_of, reaching
from sim.evaluation.nic_run import Record
from sim.evaluation.point import Point
from sim.evaluation.systems import BASELINES
from sim.evaluation.trace import FewSamplesError, arrivals_of, plan_of, trace_of
from sim.job.inputs import SampleSource

SMALL = {"nodes": 2, "mini_batch": 16, "warmup": 2, "measured": 4, "window": 32}


@cache
def small(system: str, **fields) -> dict:
    return measure(Point.named(system, **SMALL | fields))


@pytest.mark.thorough
@pytest.mark.parametrize("workload, systems", [
    ("inference", [*BASELINES, "nic", "fs", "all-on-nic"]),
    ("training", [*BASELINES, "nic", "lc", "fs", "all-on-nic"])])
def test_every_system_adds_up(workload, systems):
    for system in systems:
        found = small(system, workload=workload, **{"in_flight": 2} if workload == "inference"
                      else {})
        assert found["applicable"], system
        assert sum(found["phases_us"].values()) == pytest.approx(found["service_us"])
        assert 0 < found["interval_us"] <= found["service_us"] * 1.0001
        assert found["samples_per_second"] == pytest.approx(16 / found["interval_us"] * 1e6)
        assert 0 < max(found["busy_us"].values()) <= found["service_us"]
        assert (found["request_us"] is None) == (workload == "training")
        assert (found["without_all_reduce"] is None) == (workload == "inference")
        assert found["traffic"]["total"]["bytes"] == pytest.approx(sum(
            count["bytes"] for kind, count in found["traffic"].items() if kind != "total"))


def test_every_placement_reaches_baselines_and_nics():
    paper, nics = ({placement: small(system, in_flight=2, placement=placement)
                    for placement in PLACEMENTS} for system in ("bl-paper", "lc+rc"))
    # A gather for each of a node's tables: 13, 23 and 26 of them.
    each = [paper[placement]["busy_us"]["cpu"] for placement in ("even", "rows", "row")]
    assert (each[1] - each[0]) / 10 == pytest.approx((each[2] - each[1]) / 3) and each[1] > each[0]
    assert len({found["nic_us"]["service"] for found in nics.values()}) == len(PLACEMENTS)
    assert paper["even"] == small("bl-paper", in_flight=2)


def test_the_nics_of_a_point_are_dealt_as_its_baselines():
    for placement in PLACEMENTS:
        point = Point.named("fs", **SMALL | {"placement": placement})
        trace = trace_of(point.workload)
        options = options_of(point, point.kind.nics(point), trace, Devices.load(2),
                             Devices.load(2).gpu.gpu, {"local_cache": 0, "remote_cache": 0},
                             False, 1)
        assert SampleSource.of(options.workload).plan().tables == plan_of(point, trace).tables


def test_what_a_system_lacks_is_none():
    paper, rc = small("bl-paper"), small("rc", in_flight=2)
    assert paper["nic_us"] is paper["local_cache"] is paper["saved_lookups"] is None
    assert rc["local_cache"] is None and rc["remote_cache"]["hits"] == rc["saved_lookups"] > 0


def test_caches_of_no_rows_are_the_nic_alone():
    off = small("lc+rc", in_flight=2, local_cache=0.0, remote_cache=0.0)
    alone_ = small("nic", in_flight=2)
    same = ("service_us", "interval_us", "phases_us", "busy_us", "request_us", "traffic",
            "saved_lookups", "local_cache", "remote_cache")
    assert [off[name] for name in same] == [alone_[name] for name in same]


def test_the_graph_algorithm_changes_the_workload_only():
    plain, graph = small("bl-paper"), small("ga")
    assert graph["point"]["system"] == "bl-paper"
    assert graph["accesses"] == plain["accesses"]
    assert graph["unique_keys"] != plain["unique_keys"]


def test_a_repeat_gives_the_same_to_the_bit():
    found = small("fs", in_flight=2)
    trace_module._TRACES.clear()
    assert measure(Point.named("fs", **SMALL, in_flight=2)) == found


def test_a_persistent_kernel_takes_the_calls_off_the_host():
    plain, persistent = small("nic", in_flight=2), small("nic", in_flight=2,
                                                         persistent_gather=True)
    assert persistent["nic_us"]["launches"] == 0 < plain["nic_us"]["launches"]
    assert "driver" not in persistent["busy_us"] and plain["busy_us"]["driver"] > 0
    assert persistent["nic_us"]["service"] < plain["nic_us"]["service"]
    assert "a persistent kernel gathers on the GPU" in persistent["notes"]


def test_a_scaled_constant_reaches_the_simulated_nics_and_the_stages():
    slow = small("nic", in_flight=2, scaled=(("ethernet_100g_switch.one_way_us", 8.0),))
    # Lookups cross the switch 7 times 1.3795 us later; vectors may wait for rows of
    # this node in between.
    later = slow["nic_us"]["service"] - small("nic", in_flight=2)["nic_us"]["service"]
    assert later > 7 * 1.37


def test_all_on_the_nic_does_not_hold_terabyte():
    found = measure(Point.named("all-on-nic", dataset="terabyte", nodes=4, mini_batch=8,
                                warmup=1, measured=2))
    assert not found["applicable"] and "GB of a node's card" in found["why"]
    assert found["service_us"] is None and found["traffic"] is None


def test_rows_of_caches_are_shares_of_what_reaches_them():
    point = Point.named("fs", **SMALL | {"local_cache": 0.25, "remote_cache": 0.5,
                                         "batching": "file"})
    trace = trace_of(point.workload)
    plan = ShardPlan.deal(trace.model, 2)
    owned, foreign = [set(), set()], [set(), set()]
    for batch in trace.batches:
        for node in range(2):
            share = batch.samples.slice(8 * node, 8 * node + 8)
            for key, owner in zip(share.keys.tolist(), plan.owner_of(share.tables, share.rows)):
                owned[owner].add(key)
                if owner != node:
                    foreign[node].add(key)
    reach = reaching(trace, plan)
    assert reach["local_cache"] == sum(map(len, owned)) / 2
    assert reach["remote_cache"] == sum(map(len, foreign)) / 2
    rows, notes = cache_rows(point, point.kind.nics(point), trace)
    assert rows == {"local_cache": 8 * round(reach["local_cache"] * 0.25 / 8),
                    "remote_cache": 8 * round(reach["remote_cache"] * 0.5 / 8)} and not notes
    computing = Point.named("sc", **SMALL)
    assert cache_rows(computing, computing.kind.nics(computing), trace)[0] == {
        "local_cache": 0, "remote_cache": 0}
    assert cache_rows(point.changed(local_cache=None), point.kind.nics(point), trace)[0][
        "local_cache"] is None


def test_a_cache_that_no_preset_has_is_for_the_model_only():
    point = Point.named("lc", dataset="terabyte", nodes=1, mini_batch=1024, warmup=1, measured=2,
                        local_cache=1.0)
    trace = trace_of(point.workload)
    assert "above the 8,192 of the preset" in cache_rows(point, point.kind.nics(point), trace)[1][0]
    with pytest.raises(ValueError, match=r"local_cache must be at most .* in fidelity rtl"):
        cache_rows(point.changed(fidelity="rtl"), point.kind.nics(point), trace)


def test_phases_of_a_record_by_hand():
    record = Record(started=1000, finished=3000, asked=1200, served=2000)
    assert record.phases(250) == {"input_all_to_all": 1.8, "embedding_lookup": 2.2,
                                  "embedding_all_to_all": 1.0, "overhead": 3.0}
    assert Record(started=0, finished=1000).phases(250) == {
        "input_all_to_all": 0.0, "embedding_lookup": 4.0, "embedding_all_to_all": 0.0,
        "overhead": 0.0}
    # Marks never decrease and never exceed the end.
    odd = Record(started=0, finished=1000, asked=900, served=500)
    assert odd.phases(250) == {"input_all_to_all": 4.0, "embedding_lookup": 0.0,
                               "embedding_all_to_all": 0.0, "overhead": 0.0}
    assert odd.us == 4.0


def step(us: float) -> Step:
    found = Step()
    found.add("a", "mlp", us, "nic")
    return found


def test_times_of_steps():
    assert alone([step(2), step(4)])[0] == 3 and busy_us([step(2), step(4)]) == {"nic": 3}
    assert interval_us([step(2)] * 9, 2) == 2 == interval_us([step(2)] * 2, 4)
    # A first stage without a resource: only the busy resource determines the interval.
    late = Step()
    late.add("b", "mlp", 2, "nic", after=[late.add("a", "overhead", 50)])
    assert interval_us([late] * 6, 1) == 52 and interval_us([late] * 6, 2) == 26
    assert interval_us([late, *[step(10)] * 9], 4) == pytest.approx(9.2)
    # With one in flight, steps run in sequence.
    several = [late, step(3), step(7), late]
    ends = schedule([*several, *several], 1).finished
    assert interval_us(several, 1) == pytest.approx((ends[7] - ends[3]) / 4)


def test_requests_wait_for_their_window_and_the_system():
    trace = trace_of(Point.named("ga", **SMALL).workload)
    arrived = arrivals_of(trace, 0.7 * 0.5, 3)
    assert np.diff(arrived).mean() == pytest.approx(1 / 0.35, rel=0.4) and (
        np.diff(arrived) > 0).all()
    # Windows of 32 samples: the second and third are measured, mini-batches in sequence.
    ready = [arrived[63], arrived[63], arrived[95], arrived[95]]
    ends = []
    for time in ready:
        ends.append(max(time, ends[-1] if ends else 0.0) + 7)
    waits = np.concatenate([end - arrived[batch.numbers]
                            for end, batch in zip(ends, trace.measured)])
    found = request_us(trace, Built(Way([step(7)] * 4), 1), 0.5, 3)
    assert found == pytest.approx({"p50": np.percentile(waits, 50),
                                   "p99": np.percentile(waits, 99)})


def test_requests_wait_until_a_thread_has_formed_their_mini_batch():
    trace = trace_of(Point.named("ga", **SMALL).workload)
    arrived = arrivals_of(trace, 0.7 * 0.5, 3)
    # A thread for each window of two mini-batches.
    ends = [arrived[63] + 1000, arrived[63] + 2000, arrived[95] + 1000, arrived[95] + 2000]
    waits = np.concatenate([end + 7 - arrived[batch.numbers] for end, batch in zip(
        np.maximum.accumulate(ends), trace.measured)])
    found = request_us(trace, Built(Way([step(7)] * 4), 4, forming=Forming(1000.0, 2)), 0.5, 3)
    assert found == pytest.approx({"p50": np.percentile(waits, 50),
                                   "p99": np.percentile(waits, 99)}, rel=0.02)


def test_a_short_file_keeps_the_mini_batch(tmp_path):
    file = tmp_path / "train.txt"
    line = "\t".join(["0", *["1"] * 13, *["a"] * 26])
    file.write_text((line + "\n") * 61)
    point = Point.named("bl-paper", data=(str(file),), format="criteo", warmup=2, measured=4,
                        mini_batch=16)
    trace = trace_of(point.workload)
    assert trace.mini_batch == 16 and [len(b.samples) for b in trace.batches] == [16] * 3
    assert (trace.warmup, len(trace.measured)) == (1, 2)
    assert trace.notes[0].startswith("the files hold 61 samples: 3 instead of 6 mini-batches")
    with pytest.raises(FewSamplesError, match="data must hold at least 2 mini-batches of 32 samp"):
        trace_of(replace(point.workload, mini_batch=32))


def test_rtl_training_is_asked_for_its_update(monkeypatch):
    asked = []

    def train(options):
        asked.append(options)
        return {"complete": True, "stuck": None, "phases_us": {"update": 12.5}, "steps": 4,
                "backward": [{"bytes": 600, "packets": 6}, {"bytes": 200, "packets": 4}]}

    monkeypatch.setattr("sim.evaluation.gradient_path.train", train)
    point = Point.named("fs", workload="training", fidelity="rtl", **SMALL)
    trace = trace_of(point.workload)
    devices = Devices.load(2, scaled=(("pcie_gen3x16.bandwidth_gb_s", 2.0),))
    update_us, sent = trained(point, point.kind.nics(point), trace, devices)
    assert update_us == 12.5 and sent == {"bytes": 200, "packets": 2.5}
    run = asked[0].run.workload
    assert (run.nodes, run.mini_batch, run.samples, run.in_flight) == (2, 16, 8 * 16, 1)
    assert (run.batching, run.window_samples) == ("graph", 32)
    assert run.pcie is devices.pcie and "remote_cache=false" in run.settings
    # The driver's thread launches each gather and scatter.
    assert run.gpu.call_us == devices.software.launch_call_us > 0
    assert asked[0].method.fidelity == "rtl" and not asked[0].method.compare


def test_a_trace_is_read_again_where_its_file_was_changed_in_place(tmp_path):
    file = tmp_path / "train.txt"
    line = "\t".join(["{label}", *["3"] * 13, *["a"] * 26]) + "\n"
    point = Point.named("bl-paper", data=(str(file),), format="criteo", warmup=2, measured=4,
                        mini_batch=16)
    labels = []
    for label in "10":
        file.write_text(line.format(label=label) * 96)
        os.utime(file, (1, 1))
        labels.append({float(value) for batch in trace_of(point.workload).batches
                       for value in batch.samples.labels})
    assert labels == [{1.0}, {0.0}]
