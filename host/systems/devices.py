"""Timing models of a cluster's devices under the profiles of an evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from host.devices.copies import CopyTime
from host.devices.cpu import CpuProfile, CpuTime
from host.devices.gpu_time import GpuTime
from host.devices.mpi import MpiCollectives, MpiProfile
from host.devices.nccl import NcclCollectives, NcclProfile
from host.devices.software import SoftwareProfile
from host.devices.topology import Level, Topology, TopologyProfile
from host.timing.gpu import GpuProfile
from host.timing.network import IP_BYTES, MTUS, NetworkProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile, profile_names
from host.toml.provenance import scaled as scale

__all__ = ["NETWORK", "SMARTNIC_LINK", "Devices", "own_link", "profiles_of"]

_CPU, _MPI, _NCCL = "cpu_xeon_6226r", "mpi_ethernet", "nccl_network"
SMARTNIC_LINK = "pcie_gen3x16"
"""Profile of the link of the SmartNIC."""
_PORT_GBIT_S = 100.0
"""Rate of a port of the SmartNIC's card, an Alveo U280 with QSFP28 cages (DS963)."""
NETWORK = "ethernet_100g_switch"
"""Profile of the network unless a cluster names another."""


def own_link(gpu: str, link: str | None = None) -> str | None:
    """Return the profile of the GPU's own link: ``link``, the link measured with the GPU, or None.
    """
    measured = gpu.replace("gpu_", "pcie_", 1)
    return link or (measured if measured in profile_names("pcie_") else None)


def profiles_of(software: str, gpu: str, link: str | None = None, network: str = NETWORK,
                inside: str | None = None) -> dict[str, type]:
    """Return the names of the profiles of an evaluation and their dataclasses."""
    found = {f"software_{software}": SoftwareProfile, gpu: GpuProfile, _CPU: CpuProfile,
             _MPI: MpiProfile, _NCCL: NcclProfile, network: NetworkProfile,
             SMARTNIC_LINK: PcieProfile}
    own = own_link(gpu, link)
    found |= {} if own is None else {own: PcieProfile}
    return found if inside is None else found | {inside: TopologyProfile}


@dataclass(frozen=True)
class Devices:
    """Timing models of a node's devices and of the network between nodes.

    Members
    -------
    software: profile.
    network: profile of the network between SmartNICs, at most the rate of their ports.
    pcie: profile of the SmartNIC's link.
    gpu, cpu, copies: devices of an endpoint, a GPU with its host process.
    cpu_mpi: MPI between CPUs.
    host_mpi: MPI between the host memories of GPU nodes. A framework calls an operator for each
        collective; a program that launches graphs calls MPI directly.
    nccl: NCCL between GPU memories.
    nic_links: links between SmartNICs. GPUs of a node with NICs of their own exchange rows over
        the network, because NICs have no other link.
    threads: host threads that call operators; each mini-batch occupies one during its calls.
    communicators: NCCL communicators per GPU; each runs its collectives in order.
    one_collective: whether a single NCCL call exchanges the data of all mini-batches in a graph.
    rdma: whether kernels may store to the NIC and to other GPUs.
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
    nic_links: Topology
    threads: int = 1
    communicators: int = 1
    one_collective: bool = False
    link_share: float = 1.0
    rdma: bool = False

    @property
    def kernels(self) -> int:
        """Level of kernel fusion, one of :data:`host.devices.dense_work.LEVELS`."""
        return self.software.kernels

    @classmethod
    def load(cls, nodes: int, software: str = "eager", gpu: str = "gpu_rtx8000",
             scaled: Sequence[tuple[str, float]] = (), kernels: int | None = None,
             link: str | None = None, network: str = NETWORK, rdma: bool = False, gpus: int = 1,
             nics: int = 1, inside: str | None = None, mtu: int = MTUS[0]) -> "Devices":
        """Return the devices of an endpoint of ``nodes`` nodes behind one switch.

        scaled: pairs (profile.constant, factor), see :func:`host.toml.provenance.scaled`.
        kernels: level of kernel fusion; None takes the level of the software profile.
        link: profile of the GPU's own link, used by copies and exchanges of the GPU; None for the
            link measured with the GPU, or the SmartNIC's link.
        network: profile of the network. rdma: see the member.
        gpus, nics, inside: as in :class:`host.timing.cluster.Cluster`.
        mtu: bytes of an IP packet between GPUs and between CPUs.

        Raises ``ValueError`` for an unused profile or constant, and for ``inside`` that does not
        join ``gpus`` GPUs inside a node.
        """
        kinds = profiles_of(software, gpu, link, network, inside)
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
        net: NetworkProfile = found[network]
        joined = _inside(found[inside], gpus) if inside else ()
        payload = mtu - IP_BYTES
        topology = Topology(TopologyProfile.of(net, nodes, payload, inside=joined, nics=nics))
        cpu: CpuProfile = found[_CPU]
        hosts = Topology(TopologyProfile.of(
            net, nodes, payload, inside=_through_memory(cpu, net, gpus), nics=nics))
        port = replace(net, bandwidth_gbit_s=min(net.bandwidth_gbit_s, _PORT_GBIT_S))
        link = own_link(gpu, link)
        own: PcieProfile = found[link or SMARTNIC_LINK]
        copies = CopyTime(own, profile)
        share = 1.0 if link is None else min(
            1.0, net.bandwidth_gbit_s / 8 * nics / gpus / own.bandwidth_gb_s)
        mpi: MpiProfile = found[_MPI]
        return cls(profile, port, found[SMARTNIC_LINK], GpuTime(found[gpu], profile),
                   CpuTime(cpu), copies, MpiCollectives(mpi, hosts, call_us=cpu.operator_us),
                   MpiCollectives(mpi, hosts, call_us=0.0 if profile.graphs else
                                  profile.operator_us),
                   NcclCollectives(found[_NCCL], topology, by_rail=True),
                   Topology(TopologyProfile.of(port, nodes * nics)),
                   link_share=share if nodes > 1 else 0.0, rdma=rdma)


def _inside(profile: TopologyProfile, gpus: int) -> tuple[Level, ...]:
    """Return the levels of ``profile`` if they join ``gpus`` GPUs inside a node."""
    if profile.endpoints != gpus or profile.hosts != 1:
        raise ValueError(f"inside must join the {gpus} GPUs of a node, not {profile.name!r} of "
                         f"{profile.endpoints} endpoints in {profile.hosts} hosts")
    return profile.levels


def _through_memory(cpu: CpuProfile, network: NetworkProfile, gpus: int) -> tuple[Level, ...]:
    """Return the level of messages between the processes of a host.

    A message is written to host memory and read from it, and all processes share the bandwidth. The
    latency is that of the network, an upper bound.
    """
    return () if gpus == 1 else (Level("host memory", gpus, cpu.memory_bandwidth_gb_s / 2 / gpus,
                                       network.one_way_us, local=True),)
