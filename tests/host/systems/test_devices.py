"""Devices of an evaluation, and their scaled constants."""

import pytest

from host.systems import Devices
from host.systems.devices import profiles_of


def test_scaled_constants_reach_the_models():
    plain = Devices.load(4)
    scaled = Devices.load(4, scaled=[("gpu_rtx8000.launch_us", 2.0),
                                     ("mpi_ethernet.message_us", 0.5),
                                     ("software_eager.operator_us", 2.0),
                                     ("ethernet_100g_switch.one_way_us", 2.0)])
    assert scaled.gpu.gpu.launch_us == 2 * plain.gpu.gpu.launch_us
    assert scaled.cpu_mpi.mpi.message_us == plain.host_mpi.mpi.message_us / 2
    assert scaled.software.operator_us == 2 * plain.software.operator_us == scaled.host_mpi.call_us
    assert scaled.nccl.topology.profile.levels[0].one_way_us == 2 * plain.network.one_way_us


@pytest.mark.parametrize("name", ["gpu_h200.launch_us", "launch_us", "software_tuned.graph_us"])
def test_constants_of_profiles_that_are_not_used_are_refused(name):
    with pytest.raises(ValueError, match="scaled must name a constant of software_eager"):
        Devices.load(4, scaled=[(name, 2.0)])


def test_one_profile_charges_every_system_alike():
    for software, collective in (("eager", "mpi"), ("tuned", "nccl")):
        d = Devices.load(4, software)
        assert d.copies.software is d.gpu.software is d.software
        assert d.software.collective == collective


def test_kernels_do_as_much_as_the_software_or_the_caller_says():
    assert (Devices.load(4).kernels, Devices.load(4, "tuned").kernels) == (0, 2)
    assert Devices.load(4, kernels=3).kernels == 3


def test_a_gpu_with_a_measured_link_is_not_charged_for_the_smartnics():
    d = Devices.load(4, "tuned_h100", "gpu_h100")
    assert d.copies.pcie.name == "pcie_h100" and d.copies.pcie.bandwidth_gb_s == 54.7331
    assert d.pcie.name == "pcie_gen3x16"  # of the SmartNIC
    assert d.link_share == pytest.approx(12.5 / 54.7331)
    assert Devices.load(4, scaled=[("pcie_gen3x16.bandwidth_gb_s", 0.5)]).copies.pcie.name == \
        "pcie_gen3x16"
    assert Devices.load(4, gpu="gpu_h100", link="pcie_gen3x16").copies.pcie.name == "pcie_gen3x16"
    assert "pcie_h100" in profiles_of("tuned_h100", "gpu_h100")
    assert "pcie_h100" not in profiles_of("tuned", "gpu_rtx8000")
