"""Devices with round numbers, whose bytes and arithmetic take almost no time."""

from dataclasses import replace

import numpy as np

from host.devices.copies import CopyTime
from host.devices.cpu import CpuProfile, CpuTime
from host.devices.gpu_time import GpuTime
from host.devices.mpi import MpiCollectives, MpiProfile
from host.devices.nccl import NcclCollectives, NcclProfile
from host.devices.software import SoftwareProfile
from host.devices.topology import Topology, TopologyProfile
from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import Samples
from host.systems import Devices, Workload, workload_of
from host.timing.gpu import GpuProfile
from host.timing.network import NetworkProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile

FAST = 1e12
MODEL = Model((10, 10), 4, 2, (4,), (1,))
EAGER = SoftwareProfile("eager", operator_us=10, fused_embedding_us=100, launch_call_us=4,
                        doorbell_us=1, copy_us=5, synchronize_us=3, graphs=False, graph_us=0,
                        fused_embedding=False, packed_inputs=False, kernels=0,
                        collective="mpi")
TUNED = replace(EAGER, name="tuned", graphs=True, graph_us=6, fused_embedding=True,
                packed_inputs=True, collective="nccl")


def devices(nodes: int = 2, software: SoftwareProfile = EAGER) -> Devices:
    """Return devices: a launch takes 1 us, a kernel 2 us on one of four multiprocessors, a message
    of MPI 4 us, a link's latency 1 us, PCIe's 0.5 us."""
    network = NetworkProfile("net", 1.0, FAST, 24, True)
    topology = Topology(TopologyProfile.of(network, nodes))
    pcie = PcieProfile("pcie", 0.5, FAST)
    copies, mpi = CopyTime(pcie, software), MpiProfile("mpi", 4.0)
    nccl = replace(load_profile("nccl_network", NcclProfile), base_ll_us=7.0, hop_ll_us=2.0,
                   channels=1)
    return Devices(
        software, network, pcie,
        GpuTime(GpuProfile("gpu", 1.0, FAST, 64, 4, FAST, 2.0, multiprocessors=4), software),
        CpuTime(CpuProfile("cpu", 1, FAST, FAST, 64, FAST, 6.0)), copies,
        MpiCollectives(mpi, topology, call_us=6.0), MpiCollectives(mpi, topology, call_us=10.0),
        NcclCollectives(nccl, topology), topology)


def workload(nodes: int = 2, rows=((1, 2), (1, 3)), model: Model = MODEL) -> Workload:
    """Return the workload of nodes for samples with these rows, one in each table."""
    found = np.array(rows)
    samples = Samples.one_hot(np.zeros((len(found), model.dense), np.float32),
                              np.zeros(len(found)), found)
    return workload_of(samples, model, ShardPlan.deal(model, nodes))
