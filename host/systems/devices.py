"""Timing models of a cluster's devices under the profiles of an evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from host.devices.copies import CopyTime
from host.devices.cpu import CpuProfile, CpuTime
from host.devices.gpu_time import GpuTime
from host.devices.mpi import MpiCollectives, MpiProfile
from host.devices.nccl import NcclCollectives, NcclProfile
from host.devices.software import SoftwareProfile
from host.devices.topology import Topology, TopologyProfile
from host.timing.gpu import GpuProfile
from host.timing.network import NetworkProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile, profile_names
from host.toml.provenance import scaled as scale

__all__ = ["NETWORK", "SMARTNIC_LINK", "Devices", "own_link", "profiles_of"]

_CPU, _MPI, _NCCL = "cpu_xeon_6226r", "mpi_ethernet", "nccl_network"
SMARTNIC_LINK = "pcie_gen3x16"
"""Profile of the link of the SmartNIC."""
NETWORK = "ethernet_100g_switch"
"""Profile of the network unless a cluster names another."""


def own_link(gpu: str, link: str | None = None) -> str | None:
    """Return the profile of the GPU's own link: ``link``, the link measured with the GPU, or None.
    """
    measured = gpu.replace("gpu_", "pcie_", 1)
    return link or (measured if measured in profile_names("pcie_") else None)


def profiles_of(software: str, gpu: str, link: str | None = None,
                network: str = NETWORK) -> dict[str, type]:
    """Return the names of the profiles of an evaluation and their dataclasses."""
    found = {f"software_{software}": SoftwareProfile, gpu: GpuProfile, _CPU: CpuProfile,
             _MPI: MpiProfile, _NCCL: NcclProfile, network: NetworkProfile,
             SMARTNIC_LINK: PcieProfile}
    own = own_link(gpu, link)
    return found if own is None else found | {own: PcieProfile}


@dataclass(frozen=True)
class Devices:
    """Timing models of a node's devices and of the network between nodes.

    Members
    -------
    software, network: profiles.
    pcie: profile of the SmartNIC's link.
    gpu, cpu, copies: devices of each node.
    cpu_mpi: MPI between CPUs.
    host_mpi: MPI between the host memories of GPU nodes. A framework calls an operator for each
        collective; a program that launches graphs calls MPI directly.
    nccl: NCCL between GPU memories.
    threads: host threads that call operators; each mini-batch occupies one during its calls.
    communicators: NCCL communicators per GPU; each runs its collectives in order.
    grouped: whether a single NCCL call exchanges the data of all mini-batches in a graph.
    link_share: share of the GPU's own link that an exchange at network rate occupies.
    """

    software: SoftwareProfile
    network: NetworkProfile
    pcie: PcieProfile
    gpu: GpuTime
    cpu: CpuTime
    copies: CopyTime
    cpu_mpi: MpiCollectives
    host_mpi: MpiCollectives
    nccl: NcclCollectives
    threads: int = 1
    communicators: int = 1
    grouped: bool = False
    link_share: float = 1.0

    @property
    def kernels(self) -> int:
        """Level of kernel fusion, one of :data:`host.devices.dense_work.LEVELS`."""
        return self.software.kernels

    @classmethod
    def load(cls, nodes: int, software: str = "eager", gpu: str = "gpu_rtx8000",
             scaled: Sequence[tuple[str, float]] = (), kernels: int | None = None,
             threads: int = 1, communicators: int = 1, grouped: bool = False,
             link: str | None = None, network: str = NETWORK) -> "Devices":
        """Return the devices of ``nodes`` nodes behind one switch.

        scaled: pairs (profile.constant, factor), see :func:`host.toml.provenance.scaled`.
        kernels: level of kernel fusion; None takes the level of the software profile.
        threads, communicators, grouped: see the members.
        link: profile of the GPU's own link, used by copies and exchanges of the GPU; None for the
            link measured with the GPU, or the SmartNIC's link.
        network: profile of the network.

        Raises ``ValueError`` for an unused profile or constant.
        """
        kinds = profiles_of(software, gpu, link, network)
        found = {name: load_profile(name, kind) for name, kind in kinds.items()}
        for path, factor in scaled:
            name, _, constant = path.partition(".")
            if name not in found:
                raise ValueError(f"scaled must name a constant of {', '.join(found)}, "
                                 f"not {path!r}")
            found[name] = scale(found[name], constant, factor)
        profile: SoftwareProfile = found[f"software_{software}"]
        if kernels is not None:
            profile = replace(profile, kernels=kernels)
        link = own_link(gpu, link)
        topology = Topology(TopologyProfile.of(found[network], nodes))
        own: PcieProfile = found[link or SMARTNIC_LINK]
        copies = CopyTime(own, profile)
        share = 1.0 if link is None else min(
            1.0, found[network].bandwidth_gbit_s / 8 / own.bandwidth_gb_s)
        mpi: MpiProfile = found[_MPI]
        return cls(profile, found[network], found[SMARTNIC_LINK], GpuTime(found[gpu], profile),
                   CpuTime(found[_CPU]), copies,
                   MpiCollectives(mpi, topology, call_us=found[_CPU].operator_us),
                   MpiCollectives(mpi, topology, call_us=0.0 if profile.graphs else
                                  profile.operator_us),
                   NcclCollectives(found[_NCCL], topology), threads, communicators, grouped,
                   share)
