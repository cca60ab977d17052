"""Devices of an evaluation, and their scaled constants."""

import pytest

from host.systems import Devices


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
