"""Devices with round numbers, for times that can be worked out by hand."""

from host.devices.cpu import CpuProfile
from host.devices.mpi import MpiProfile
from host.devices.nccl import NcclProfile
from host.devices.software import SoftwareProfile
from host.devices.topology import Level, TopologyProfile
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile

# 100,000 bytes and 1,000,000 operations per microsecond; kernels of 1 us, launch of 4 us.
GPU = GpuProfile("gpu", 4.0, 100.0, 64, 2, 1.0, 1.0, multiprocessors=1)
EAGER = SoftwareProfile("eager", 10.0, 100.0, 4.0, 0.5, 6.0, 3.0, False, 0.0, False, False, 0,
                        "mpi")
TUNED = SoftwareProfile("tuned", 10.0, 100.0, 4.0, 0.5, 6.0, 3.0, True, 5.0, True, True, 2,
                        "nccl")
PCIE = PcieProfile("pcie", 0.5, 10.0)
# 20,000 bytes per microsecond in order, 5,000 in random order; 500,000 operations; calls of 2 us.
CPU = CpuProfile("cpu", 4, 20.0, 5.0, 64, 0.5, 2.0)
MPI = MpiProfile("mpi", 3.0)
NCCL = NcclProfile("nccl", 4.0, 10.0, 8.0, 3.0, 4.0, 9.0, 0.5, 1.0, 2.0, 0.5, 0.75, 1000, 2, 2, 6.0)
# Two hosts of two GPUs: 50,000 bytes per microsecond inside a host, 10,000 between hosts.
HOSTS = TopologyProfile("hosts", (Level("in", 2, 50.0, 1.0, True), Level("between", 2, 10.0, 3.0)))
FLAT = TopologyProfile("flat", (Level("switch", 4, 10.0, 2.0),))
