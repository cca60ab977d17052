"""Timing models against figures worked out by hand from their profiles."""

from collections.abc import Callable
from dataclasses import replace
from math import inf

import pytest

from host.devices.cpu import CpuProfile
from host.devices.mpi import MpiProfile
from host.devices.nccl import NcclProfile
from host.devices.software import SoftwareProfile
from host.devices.topology import TopologyProfile
from host.timing.clock import Link
from host.timing.gpu import GpuLookups, GpuMlp, GpuProfile, LaunchThread, MemoryClock
from host.timing.network import Network, NetworkProfile
from host.timing.pcie import Pcie, PcieProfile
from host.toml.profile import load_profile, profile_names


def test_every_profile_loads():
    kinds = {"pcie": PcieProfile, "ethernet": NetworkProfile, "gpu": GpuProfile,
             "software": SoftwareProfile, "cpu": CpuProfile, "mpi": MpiProfile,
             "nccl": NcclProfile, "topology": TopologyProfile}
    for name in profile_names():
        assert load_profile(name, kinds[name.split("_")[0]]).name == name
    with pytest.raises(ValueError, match=r"profile must be one of .*, not 'nothing'"):
        load_profile("nothing", PcieProfile)


def test_link_serialises():
    link = Link(12.5)  # 50 bytes per cycle
    assert link.send(10, 100) == (10, 12)
    assert link.send(10, 50) == (12, 13)
    assert link.send(20, 50) == (20, 21)
    assert link.busy == 4


def test_pcie_round_trip():
    assert Pcie(load_profile("pcie_gen3x16", PcieProfile)).lookahead == 210


def test_gpu_joins_waiting_lists():
    gpu: GpuLookups[str] = GpuLookups(GpuProfile("g", 4.0, 64.0, 64, 1, kernel_us=0.0), 64)
    first = gpu.arrive(0, "a", 8)
    assert first is not None and first.lists == ("a",)
    assert first.end == 1000 + 8 * 64 / (64 * 4)  # 4 us launch, then 64 GB/s
    assert gpu.arrive(10, "b", 4) is None
    assert gpu.arrive(20, "c", 4) is None
    second = gpu.finish(first.end)
    assert second is not None and second.lists == ("b", "c")
    assert second.end == first.end + 1000 + 2
    assert gpu.finish(second.end) is None
    assert (gpu.launches, gpu.rows) == (2, 16)


@pytest.mark.parametrize(("name", "lookahead"), [
    ("ethernet_100g_direct", 133), ("ethernet_100g_switch", 344)])
def test_network_latency(name, lookahead):
    network = Network(load_profile(name, NetworkProfile), 2)
    assert network.lookahead == lookahead
    assert network.deliver(100, 0, 1, 64) == 100 + lookahead


def test_switch_queues_at_the_output():
    switch = Network(load_profile("ethernet_100g_switch", NetworkProfile), 4)
    first = switch.deliver(0, 0, 2, 1476)
    assert switch.deliver(0, 1, 2, 1476) == first + 30  # 1,500 bytes at 50 per cycle
    assert switch.deliver(0, 1, 3, 1476) == first
    direct = Network(load_profile("ethernet_100g_direct", NetworkProfile), 3)
    assert direct.deliver(0, 0, 2, 1476) == direct.deliver(0, 1, 2, 1476)


def test_a_queue_of_a_switch_may_be_full():
    profile = replace(load_profile("ethernet_100g_switch", NetworkProfile), queue_bytes=3000)
    switch = Network(profile, 4)
    first = switch.deliver(0, 0, 2, 1476)
    assert switch.deliver(0, 1, 2, 1476) == first + 30
    assert switch.deliver(0, 3, 2, 64) == inf
    assert switch.deliver(0, 3, 1, 64) == first
    assert switch.deliver(2, 3, 2, 64) == first + 60  # 100 bytes have left


@pytest.mark.parametrize(("changes", "message"), [
    ({"queue_bytes": 1000}, "queue_bytes must be at least 1542, the longest frame, not 1000"),
    ({"queue_bytes": 9000, "switched": False}, "queue_bytes must go with switched, not 9000"),
])
def test_queues_that_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(load_profile("ethernet_100g_switch", NetworkProfile), **changes)


def test_cables_join_at_most_three():
    with pytest.raises(ValueError, match="nodes must be between 1 and 3 of ethernet_100g_direct"):
        Network(load_profile("ethernet_100g_direct", NetworkProfile), 4)


@pytest.mark.parametrize("payload", [150, 1110, 1430])
def test_switch_output_reaches_the_measured_goodput(payload):
    """At 100 Gb/s, the goodput of UDP is p / (p + 66) of the rate."""
    switch = Network(load_profile("ethernet_100g_switch", NetworkProfile), 2)
    for _ in range(1001):
        start = switch.deliver(0, 0, 1, payload + 42)
    rate = 1000 * payload * 8 / ((start - switch.lookahead) * 4)
    assert rate == pytest.approx(100 * payload / (payload + 66))


def test_a_gather_is_a_kernel():
    """A gather of few rows takes a kernel's least time; its memory is free before."""
    gpu: GpuLookups[str] = GpuLookups(GpuProfile("g", 1.0, 64.0, 64, 2, kernel_us=2.0), 64)
    first, second = gpu.arrive(0, "a", 4), gpu.arrive(0, "b", 4000)
    assert first is not None and second is not None
    assert first.end == 250 + 500 and second.end == 250 + 4004 * 64 / (64 * 4)


def test_kernels_share_the_memory_and_streams_limit_them():
    gpu: GpuLookups[int] = GpuLookups(GpuProfile("g", 1.0, 64.0, 64, 2, kernel_us=0.0), 128)
    ends = [gather and gather.end for gather in (gpu.arrive(t, t, 1000) for t in (0, 1, 2))]
    assert ends == [250 + 500, 250 + 1000, None]  # 128,000 bytes at 64 GB/s are 500 cycles
    assert gpu.busy == 750 + 1249


def test_one_thread_calls_gathers_one_after_the_other():
    # A call is 1,000 cycles.
    profile = GpuProfile("g", 1.0, 64.0, 64, 4, kernel_us=0.0, call_us=4.0)
    ends: list[tuple[float, Callable[[float], None]]] = []
    thread = LaunchThread(profile, lambda time, action: ends.append((time, action)))
    rows: GpuLookups[str] = GpuLookups(profile, 64, thread)
    dense: GpuLookups[str] = GpuLookups(profile, 64, thread)
    begun = []
    for name, queue in (("rows", rows), ("dense", dense)):
        thread.join(lambda now, name=name, queue=queue: begun.append((name, queue.start(now))))
    first = rows.arrive(0, "a", 4)
    assert first is not None and (ends[-1][0], first.end) == (1000, 1250 + 1)
    # Streams are free, the thread is not: lists that arrive meanwhile share a gather.
    assert rows.arrive(10, "b", 4) is rows.arrive(20, "c", 4) is dense.arrive(30, "d", 1) is None
    ends[-1][1](1000)
    assert [(name, gather and gather.lists) for name, gather in begun] == [("rows", ("b", "c"))]
    assert rows.arrive(1500, "e", 4) is None
    ends[-1][1](2000)
    assert begun[1] == ("dense", dense_gather := begun[1][1]) and dense_gather.lists == ("d",)
    ends[-1][1](3000)
    assert begun[2][0] == "rows" and begun[2][1].lists == ("e",)
    ends[-1][1](4000)
    assert [gather for _, gather in begun[3:]] == [None, None] and thread.free
    assert [time for time, _ in ends] == [1000, 2000, 3000, 4000]


def test_a_thread_that_waits_between_launches_takes_all_lists_in_the_next():
    # A call is 250 cycles, and launches are at least 2,000 apart.
    profile = GpuProfile("g", 1.0, 64.0, 64, 4, kernel_us=0.0, call_us=1.0, pace_us=8.0)
    assert (profile.latency_us, profile.apart_us) == (2.0, 8.0)
    assert replace(profile, pace_us=0.5).apart_us == 1.0  # never before the call ends
    ends: list[tuple[float, Callable[[float], None]]] = []
    thread = LaunchThread(profile, lambda time, action: ends.append((time, action)))
    rows: GpuLookups[str] = GpuLookups(profile, 64, thread)
    begun = []
    thread.join(lambda now: begun.append(rows.start(now)))
    # The wait is between launches: it adds nothing to the latency of a list that finds none.
    first = rows.arrive(0, "a", 4)
    assert first is not None and (ends[-1][0], first.first) == (2000, 250 + 250)
    assert rows.arrive(10, "b", 4) is rows.arrive(1990, "c", 4) is None
    ends[-1][1](2000)
    assert begun[0].lists == ("b", "c") and begun[0].first == 2000 + 250 + 250
    assert rows.launches == 2 and ends[-1][0] == 4000


def test_bags_read_rows_and_indices_and_write_vectors():
    # 64 GB/s are 256 bytes a cycle: rows at half of it, indices and vectors at a quarter.
    profile = GpuProfile("g", 1.0, 64.0, 64, 4, kernel_us=0.0, gather_fraction=0.5,
                         stream_fraction=0.25)
    gpu: GpuLookups[str] = GpuLookups(profile, 128)
    gather = gpu.arrive(0, "a", 1000, 100)
    assert gather is not None
    assert gather.end == 250 + 1000 * 128 / 128 + (4 * 1000 + 100 * 128) / 64
    rows = GpuLookups[str](profile, 128).arrive(0, "a", 1000)
    assert rows is not None and rows.end == 250 + 1000
    assert (gpu.rows, gpu.launches) == (1000, 1)
    # Bags that wait share a kernel, which reads the weights of weighted bags with their rows.
    thread = LaunchThread(replace(profile, call_us=1.0), lambda time, action: None)
    weighted: GpuLookups[str] = GpuLookups(profile, 128, thread)
    thread.free = False
    assert weighted.arrive(0, "a", 1000, 100, 600) is None
    assert weighted.arrive(0, "b", 1000, 100) is None
    thread.free = True
    both = weighted.start(0)
    assert both is not None and both.lists == ("a", "b")
    assert both.end == 250 + 2000 + (4 * 2600 + 200 * 128) / 64


def test_gathers_of_rows_and_of_bags_share_the_memory():
    profile, memory = GpuProfile("g", 1.0, 64.0, 64, 4, kernel_us=0.0), MemoryClock()
    rows, bags = (GpuLookups[str](profile, 64, memory=memory) for _ in range(2))
    first, second = rows.arrive(0, "a", 4000), bags.arrive(1, "b", 64, 4)
    assert first is not None and second is not None
    assert first.end == 250 + 1000 and second.first == first.end
    assert second.end == second.first + 16 + (256 + 256) / 256


def test_without_a_thread_calls_do_not_wait_for_each_other():
    gpu: GpuLookups[str] = GpuLookups(
        GpuProfile("g", 1.0, 64.0, 64, 4, call_us=4.0, kernel_us=0.0), 64)
    ends = [gather and gather.end for gather in (gpu.arrive(0, "a", 4), gpu.arrive(1, "b", 4))]
    assert ends == [1250 + 1, 1251 + 1]


def test_mlp_of_mini_batches_in_turn():
    # 4 us launch; 1 TFLOP/s: a sample of 8 million operations takes 8 us.
    mlp = GpuMlp(GpuProfile("g", 4.0, 64.0, 64, 1, 1.0), 8_000_000)
    assert mlp.run(0, 2) == 1000 + 2 * 2000
    assert mlp.run(500, 1) == 5000 + 2000
    assert mlp.run(10_000, 1) == 10_000 + 1000 + 2000


@pytest.mark.parametrize("kind, field, values", [
    (PcieProfile, "bandwidth_gb_s", {"one_way_us": 1.0, "bandwidth_gb_s": 0.0}),
    (NetworkProfile, "one_way_us", {"one_way_us": -1.0, "bandwidth_gbit_s": 1.0,
                                    "overhead_bytes": 0, "switched": True}),
    (NetworkProfile, "overhead_bytes", {"one_way_us": 1.0, "bandwidth_gbit_s": 1.0,
                                        "overhead_bytes": -1, "switched": True}),
    (GpuProfile, "streams", {"launch_us": 1.0, "memory_bandwidth_gb_s": 1.0, "access_bytes": 1,
                             "streams": 0}),
    (GpuProfile, "call_us", {"launch_us": 1.0, "memory_bandwidth_gb_s": 1.0, "access_bytes": 1,
                             "streams": 1, "call_us": -1.0}),
    (GpuProfile, "pace_us", {"launch_us": 1.0, "memory_bandwidth_gb_s": 1.0, "access_bytes": 1,
                             "streams": 1, "pace_us": -1.0}),
    (GpuProfile, "float32_tflops", {"launch_us": 1.0, "memory_bandwidth_gb_s": 1.0,
                                    "access_bytes": 1, "streams": 1, "float32_tflops": 0.0}),
])
def test_constants_that_cannot_be_are_refused(kind, field, values):
    with pytest.raises(ValueError, match=rf"^{field} must be "):
        kind("x", **values)
