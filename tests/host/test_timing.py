"""Timing models against figures worked out by hand from their profiles."""

import pytest

from host.gpu import GpuLookups, GpuProfile
from host.network import Network, NetworkProfile
from host.pcie import Pcie, PcieProfile
from host.profile import load_profile, profile_names
from host.timing import Link


def test_every_profile_loads():
    kinds = {"pcie": PcieProfile, "ethernet": NetworkProfile, "gpu": GpuProfile}
    for name in profile_names():
        assert load_profile(name, kinds[name.split("_")[0]]).name == name
    with pytest.raises(ValueError, match=r"profile must be one of .*, not 'nothing'"):
        load_profile("nothing", PcieProfile)


def test_link_serialises():
    link = Link(12.5)  # 50 bytes a cycle
    assert link.send(10, 100) == (10, 12)
    assert link.send(10, 50) == (12, 13)
    assert link.send(20, 50) == (20, 21)
    assert link.busy == 4


def test_pcie_round_trip():
    assert Pcie(load_profile("pcie_gen3x16", PcieProfile)).lookahead == 210


def test_gpu_joins_waiting_lists():
    gpu: GpuLookups[str] = GpuLookups(GpuProfile("g", 4.0, 64.0, 64, 1), 64)
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
    network = Network(load_profile(name, NetworkProfile), 4)
    assert network.lookahead == lookahead
    assert network.deliver(100, 0, 1, 64) == 100 + lookahead


def test_switch_queues_at_the_output():
    switch = Network(load_profile("ethernet_100g_switch", NetworkProfile), 4)
    first = switch.deliver(0, 0, 2, 1476)
    assert switch.deliver(0, 1, 2, 1476) == first + 30  # 1,500 bytes at 50 a cycle
    assert switch.deliver(0, 1, 3, 1476) == first
    direct = Network(load_profile("ethernet_100g_direct", NetworkProfile), 4)
    assert direct.deliver(0, 0, 2, 1476) == direct.deliver(0, 1, 2, 1476)
