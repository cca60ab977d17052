"""Runs of NICs: counts after the warm-up, and runs that points share."""

from dataclasses import replace
from itertools import pairwise

import pytest
from filelock import FileLock

from host.systems import Devices, EnTuning
from host.timing.gpu import GpuProfile
from host.toml.profile import load_profile
from sim.evaluation import nic_run
from sim.evaluation import trace as trace_module
from sim.evaluation.busy import busy_trace, deeper, first_depth
from sim.evaluation.en_nics import en_nic
from sim.evaluation.measure import measure
from sim.evaluation.nic_options import as_nics_see, cache_rows, options_of
from sim.evaluation.nic_run import NicRun, Record, RunOf, all_runs, run_nics
from sim.evaluation.point import Point
from sim.evaluation.site import Site
from sim.evaluation.store import Store
from sim.evaluation.trace import trace_key, trace_of, without_small

POINT = Point.named("lc+rc", nodes=2, mini_batch=16, warmup=2, measured=4, window=32)


def options(point: Point = POINT, depth: int = 1):
    trace, devices = trace_of(point.workload), Devices.load(point.cluster.nodes)
    nics = point.kind.nics(point)
    rows, _ = cache_rows(point, nics, trace)
    return options_of(point, nics, trace, devices, devices.gpu.gpu, rows, False, depth)


def test_what_is_counted_after_the_warm_up_is_what_a_run_of_it_alone_counts_less():
    batches = trace_of(POINT.workload).batches
    whole, warm, rest = (run_nics(options(), *of) for of in (
        (batches,), (batches[:2],), (batches, 2)))
    assert rest.counts == {name: count - warm.counts[name] for name, count in whole.counts.items()}
    assert all(count > warm.counts[name] > 0 for name, count in whole.counts.items()
               if not name.startswith("delivery."))
    assert rest.gathered == [both - before for both, before in zip(whole.gathered, warm.gathered)]
    assert 0 < sum(rest.gathered) < sum(whole.gathered)
    assert rest.launches == [a - b for a, b in zip(whole.launches, warm.launches, strict=True)]
    assert rest.delivered == [a - b for a, b in zip(whole.delivered, warm.delivered, strict=True)]
    assert min(rest.delivered) > 0
    assert rest.traffic == {kind: {unit: count - warm.traffic[kind][unit]
                                   for unit, count in of.items()}
                            for kind, of in whole.traffic.items()}
    assert rest.records == whole.records
    for name in ("hits", "accesses"):
        each = [getattr(record, name) for record in rest.records]
        assert sum(each[2:]) == rest.counts[f"local_cache.{name}"] and min(each) >= 0
        assert sum(each) == whole.counts[f"local_cache.{name}"] and each[0] != each[-1]
    # With several in flight, warm-up and measurement overlap.
    two, rest = run_nics(options(depth=2), batches), run_nics(options(depth=2), batches, 2)
    assert rest.counts == two.counts
    assert {(record.hits, record.accesses) for record in two.records} == {(None, None)}
    # The other counts cover the time between two ends, each with two more in flight.
    assert rest.mini_batches == 1 + 1 and two.mini_batches == 4
    assert 0 < 2 * sum(rest.gathered) < 3 * sum(two.gathered) / 2


def h100(measured: int, constant: str = "", factor: float = 1.0) -> float:
    """Return the interval of FS's NICs on four nodes of one H100."""
    point = Point.named("fs", mini_batch=128, software="tuned_h100",
                        gpu="gpu_h100", link="pcie_h100", local_cache=None, remote_cache=None,
                        warmup=measured, measured=measured,
                        scaled=((constant, factor),) if constant else ())
    _, part = point.kind.at(Site.of(point))
    assert part is not None
    return part.times[0].interval_us


def test_nics_with_a_faster_gpu_have_no_longer_interval_after_a_short_trace():
    assert h100(4, "gpu_h100.launch_us", 0.9) <= 1.005 * h100(4)


@pytest.mark.thorough
@pytest.mark.parametrize("constant", ["software_tuned_h100.launch_call_us",
                                      "ethernet_100g_switch.one_way_us",
                                      "pcie_gen3x16.one_way_us"])
def test_nics_with_a_better_constant_have_no_longer_interval(constant):
    times = [h100(32, constant, factor) for factor in (1.1, 1.0, 0.9, 0.5)]
    assert all(better <= 1.005 * worse for worse, better in pairwise(times)), times


def test_an_interval_is_measured_after_the_start_and_before_the_end_of_a_run():
    trace = trace_of(Point.named("lc", mini_batch=128, warmup=2, measured=8).workload)
    busy, in_flight = busy_trace(trace, 4)
    assert (in_flight, busy.warmup, len(busy.measured)) == (4, 8 * 4, 4 * 4 + 4)
    assert all((a.numbers == b.numbers).all() for a, b in zip(trace.batches, busy.batches))
    less, _ = busy_trace(without_small(trace, 1000), 4)
    assert less.model == without_small(trace, 1000).model and len(less.batches) == 52
    # Small shares have more mini-batches in flight, but not more keys.
    assert [first_depth(trace, of) for of in (1, 32, 64, 100, 256, 512)] == [16, 16, 8, 8, 2, 2]
    large = trace_of(Point.named("lc", mini_batch=4096, warmup=1, measured=4).workload)
    assert first_depth(large, 64) == 4
    # Without further samples, fewer mini-batches are in flight, or one.
    only = replace(trace, only=True)
    assert busy_trace(only, 8) == (only, 2)
    short = trace_of(replace(trace.of, measured=3))
    assert busy_trace(replace(short, only=True), 8)[1] == 1
    # A short trace is extended.
    assert (busy_trace(short, 2)[1], len(busy_trace(short, 2)[0].measured)) == (2, 8 + 2)


def test_more_mini_batches_are_in_flight_while_nics_become_faster():
    small, large = (trace_of(Point.named("lc", mini_batch=size, warmup=1, measured=2).workload)
                    for size in (128, 4096))

    def tried(depth, *us, alone=1000.0, enough=0.0, trace=small):
        return deeper(trace, depth, us, lambda: alone, enough)

    assert tried(2, 20.0) and tried(4, 20.0, 10.0)
    assert not tried(4, 20.0, 20.0) and not tried(16, 20.0)
    assert not tried(2, 3.0) and not tried(2, 200.0) and not tried(2, 20.0, trace=large)
    assert tried(2, 20.0, enough=19.0) and not tried(2, 20.0, enough=20.0)
    # A mini-batch takes 40 us among others.
    assert tried(2, 20.0, alone=20.0) and not tried(2, 20.0, alone=19.0)


@pytest.mark.thorough
def test_an_interval_does_not_depend_on_the_length_of_its_run(monkeypatch):
    """Owners pool bags of up to 200 keys: their waits vary for hundreds of mini-batches."""
    point = Point.named("en", dataset="two_towers", mini_batch=1024, warmup=0, measured=2,
                        software="tuned_h100", gpu="gpu_h100", link="pcie_h100", rdma=True,
                        local_cache=None, remote_cache=None)
    site = Site.of(point)
    tuning = EnTuning(ring=False, reads=True, deliver="pooled", pool="auto", pace_us=32.0,
                      copied_rows=1_000_000)
    short = en_nic(site, tuning).times[0].interval_us

    def longer(trace, depth):
        found, depth = busy_trace(trace, depth)
        return trace_of(replace(found.of, warmup=32, measured=32 + depth)), depth

    monkeypatch.setattr("sim.evaluation.nic.busy_trace", lambda trace, depth: (
        without_small(longer(trace, depth)[0], 1_000_000), longer(trace, depth)[1]))
    assert en_nic(site, tuning).times[0].interval_us == pytest.approx(short, rel=0.02)


@pytest.mark.thorough
def test_rtl_counts_the_same_after_the_warm_up_and_takes_no_longer_for_it():
    batches = trace_of(POINT.workload).batches
    rtl = options(POINT.changed(fidelity="rtl"))
    noted, plain = run_nics(rtl, batches, 2), run_nics(rtl, batches)
    assert noted == run_nics(options(), batches, 2) and noted.records == plain.records


def made_up(number: int) -> NicRun:
    return NicRun([Record(0.5, 1.0 / 3, number)], 250.0, [1, 2], [number, 5], [1, 0], [6, 0],
                  [2, 0], [3, 4], {"total": {"bytes": 64, "packets": 1}}, 2,
                  {"local_cache.hits": 3}, {"local_cache": 8})


@pytest.fixture
def ran(monkeypatch):
    """The options of runs that take no time."""
    asked = []

    def run(options, batches, warmup):
        asked.append(options.workload.in_flight)
        return made_up(options.workload.in_flight)

    monkeypatch.setattr(nic_run, "run_nics", run)
    trace_module._TRACES.clear()
    yield asked
    trace_module._TRACES.clear()


def test_a_run_is_done_once_with_and_without_a_store(ran, tmp_path):
    trace, wanted = trace_of(POINT.workload), [options(depth=depth) for depth in (1, 3, 1)]
    for runs in (None, Store(tmp_path, "v")):
        ran.clear()
        first = all_runs(wanted, trace, runs)
        assert first == all_runs(wanted, trace, runs) == [made_up(1), made_up(3), made_up(1)]
        assert ran == [1, 3]
    # Another process, another trace with equally many samples, another version of the code.
    other = POINT.changed(batching="graph")
    ran.clear()
    assert all_runs(wanted, trace, Store(tmp_path, "v")) == first and not ran
    all_runs(wanted[:1], trace_of(other.workload), Store(tmp_path, "v"))
    all_runs(wanted[:1], trace, Store(tmp_path, "w"))
    assert ran == [1, 1]


def test_what_another_process_is_at_comes_last(ran, tmp_path, monkeypatch):
    trace, wanted = trace_of(POINT.workload), [options(depth=depth) for depth in (1, 2)]
    store = Store(tmp_path, "v")
    key = RunOf(wanted[0], trace_key(POINT.workload))
    assert store.once(key, dict, wait=False) == {}
    path = next(tmp_path.rglob("*.json"))
    path.unlink()
    lock = FileLock(path.with_suffix(".lock"))
    lock.acquire()
    assert store.once(key, dict, wait=False) is None
    once = Store.once

    def told(self, point, make, wait=True):
        if wait:  # The other process finishes its run while this process finishes the others.
            assert ran == [2]
            store.put(key, made_up(7).to_json())
            lock.release()
        return once(self, point, make, wait)

    monkeypatch.setattr(Store, "once", told)
    assert all_runs(wanted, trace, store) == [made_up(7), made_up(2)] and ran == [2]


def test_a_point_is_the_same_to_the_bit_with_its_runs_on_disk(tmp_path):
    runs = Store(tmp_path, "v")
    point = POINT.changed(in_flight=2)
    expected = measure(point)
    assert measure(point, runs) == measure(point, runs) == expected
    # Runs with one and with two mini-batches in flight; another point shares the first.
    assert len(list(tmp_path.rglob("*.json"))) == 2
    assert measure(point.changed(in_flight=1), runs) == measure(point.changed(in_flight=1))
    assert len(list(tmp_path.rglob("*.json"))) == 2


def test_requester_side_merge_may_be_asked_for():
    merged = options(POINT.changed(settings=("requester_merge=true",)))
    assert [setting for setting in merged.workload.settings if "merge" in setting] == [
        "requester_merge=true"]
    assert "requester_merge=false" in options().workload.settings
    counts = run_nics(merged, trace_of(POINT.workload).batches).counts
    assert counts["remote_cache.hits"] > run_nics(
        options(), trace_of(POINT.workload).batches).counts["remote_cache.hits"]


@pytest.mark.thorough
def test_nics_that_run_half_the_samples_take_a_further_interval_for_the_rest():
    point = Point.named("lc+rc", dataset="multi_hot", nodes=2, mini_batch=4096, warmup=1,
                        measured=2, local_cache=None, remote_cache=None)
    half = measure(point.changed(mini_batch=2048))
    few, whole = measure(point.changed(sampled=2048)), measure(point)
    once = dict.fromkeys(("interval", "gathered"), 2) | {
        "service": 1 + half["nic_us"]["interval"] / half["nic_us"]["service"]}
    for name, factor in once.items():
        assert few["nic_us"][name] == pytest.approx(factor * half["nic_us"][name])
        assert few["nic_us"][name] == pytest.approx(whole["nic_us"][name], rel=0.15)
    assert few["traffic"]["total"]["bytes"] == 2 * half["traffic"]["total"]["bytes"]
    assert few["mini_batch"] == 4096 and few["accesses"] == whole["accesses"]


@pytest.mark.parametrize("fields", [{"sampled": 33}, {"sampled": 8, "workload": "training"}])
def test_sampled_is_for_smaller_mini_batches_of_inference(fields):
    with pytest.raises(ValueError, match="sampled must be at most the 32 samples"):
        Point.named("lc", **{"mini_batch": 32} | fields)


def test_gpus_that_serve_nics_alike_share_runs():
    as_is = replace(load_profile("gpu_rtx8000", GpuProfile), memory_bandwidth_gb_s=672.0,
                    access_bytes=64, gather_fraction=1.0, float32_tflops=16.3, gemm_fraction=1.0)
    seen = as_nics_see(as_is, 64)
    for fields in ({"stream_fraction": 0.5}, {"access_bytes": 32}, {"poll_us": 1.0},
                   {"multiprocessors": 7}, {"block_bytes": 512},
                   {"gather_fraction": 0.5, "memory_bandwidth_gb_s": 1344.0},
                   {"gather_fraction": 0.5, "memory_bandwidth_gb_s": 2688.0, "access_bytes": 128},
                   {"gemm_fraction": 0.5, "float32_tflops": 32.6}):
        assert as_nics_see(replace(as_is, **fields), 64) == seen
    for fields in ({"launch_us": 2.0}, {"kernel_us": 1.0}, {"access_bytes": 128},
                   {"gather_fraction": 0.5}, {"gemm_fraction": 0.5}, {"call_us": 3.0}):
        assert as_nics_see(replace(as_is, **fields), 64) != seen


def test_a_run_takes_as_long_with_what_nics_see_of_a_gpu_as_with_its_profile():
    plain = options()
    gpu = replace(plain.workload.gpu, access_bytes=128, gather_fraction=0.3, gemm_fraction=0.1,
                  stream_fraction=0.2, multiprocessors=5, block_bytes=77, poll_us=9.0)
    trace = trace_of(Point.named("lc+rc", nodes=2, mini_batch=16, warmup=2, measured=4,
                                 window=32).workload)
    runs = [run_nics(replace(plain, workload=replace(plain.workload, gpu=each)), trace.batches)
            for each in (gpu, as_nics_see(gpu, 64))]
    assert runs[0] == runs[1]


def test_only_the_mini_batches_of_nics_are_formed_if_nics_run_smaller_ones():
    point = Point.named("fs", nodes=2, mini_batch=64, warmup=0, measured=2, sampled=16)
    site = Site.of(point)
    assert site.trace is Site.of(Point.named("bl-tuned", nodes=2, mini_batch=64, warmup=0,
                                             measured=2)).trace
    assert (site.trace.of.batching, site.trace.mini_batch) == ("file", 64)
    assert (site.nic_trace.of.batching, site.nic_trace.mini_batch) == ("graph", 16)
    assert len(site.nic_trace.measured) == len(site.trace.measured)
