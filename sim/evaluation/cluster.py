"""Cluster of a point: its fields, and their values in a cluster file."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from host.bounds import check_known, check_least
from host.devices.dense_work import LEVELS
from host.placement.deal import check_placement
from host.systems import NETWORK, WIRES
from host.systems.devices import SMARTNIC_LINK
from host.timing.cluster import Cluster as ClusterFile
from host.timing.cluster import check_gpus
from host.timing.network import MTUS
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile, profile_names

__all__ = ["Cluster", "check_shipped", "cluster_fields", "software_names"]


@cache
def software_names() -> tuple[str, ...]:
    """Return the included software profiles, without their prefix."""
    return tuple(name.removeprefix("software_") for name in profile_names("software_"))


@dataclass(frozen=True)
class Cluster:
    """Nodes and their profiles, the same for every system.

    Members
    -------
    nodes: number of nodes.
    placement: one of :data:`host.placement.deal.PLACEMENTS`, or the node of each table, such as
        ``0,0,1``; None for the fastest, see :func:`sim.evaluation.placing.placed`.
    software: software profile ``eager`` or ``tuned``, or a measured one, ``tuned_h100``.
    gpu: profile of each node's GPU.
    scaled: (profile.constant, factor) of each scaled constant, such as ``("gpu_rtx8000.launch_us",
        0.5)``; names as in :func:`host.toml.provenance.constants`.
    kernels: kernel fusion, one of :data:`host.devices.dense_work.LEVELS`; by default the level of
        the software profile.
    link: profile of each GPU's own PCIe link; by default the link measured with the GPU, or the
        link of the SmartNIC.
    network: profile of the network.
    rdma: whether kernels may write to remote GPUs.
    wire: shortest format of a value between nodes that a system may choose, one of
        :data:`host.systems.WIRES`.
    mtu: bytes of the largest IP packets between nodes that a system may choose, one of
        :data:`host.timing.network.MTUS`.
    gpus, nics, inside: GPUs and NICs of each node, and the profile of the links between its GPUs,
        see :class:`host.timing.cluster.Cluster`.
    """

    nodes: int = 4
    placement: str | None = "even"
    software: str = "eager"
    gpu: str = "gpu_rtx8000"
    scaled: tuple[tuple[str, float], ...] = ()
    kernels: int | None = None
    link: str | None = None
    network: str = NETWORK
    rdma: bool = False
    wire: str = "float32"
    mtu: int = MTUS[0]
    gpus: int = 1
    nics: int = 1
    inside: str | None = None

    def __post_init__(self) -> None:
        check_known(self, software=software_names(), gpu=profile_names("gpu_"), wire=tuple(WIRES),
                    mtu=MTUS)
        if self.placement is not None:
            check_placement(self.placement)
        check_least(self, nodes=1)
        check_gpus(self.gpus, self.nics, self.inside)
        if self.kernels is not None and self.kernels not in LEVELS:
            raise ValueError(f"kernels must be one of {', '.join(map(str, LEVELS))}, "
                             f"not {self.kernels!r}")
        for name, factor in self.scaled:
            if not factor > 0:
                raise ValueError(f"scaled must be above 0, not {factor!r} for {name}")

    @property
    def endpoints(self) -> int:
        """GPUs of all nodes; each holds a share of the rows and of a mini-batch."""
        return self.nodes * self.gpus

    @property
    def all_nics(self) -> int:
        """NICs of all nodes."""
        return self.nodes * self.nics

    @property
    def gpus_per_nic(self) -> int:
        """GPUs that a NIC serves."""
        return self.gpus // self.nics


def cluster_fields(cluster: ClusterFile) -> dict[str, Any]:
    """Return the values of `Cluster` that a cluster file gives."""
    return {"gpu": cluster.gpu.name, "network": cluster.network.name,
            "link": cluster.gpu_link and cluster.gpu_link.name,
            **{name: getattr(cluster, name)
               for name in ("nodes", "software", "gpus", "nics", "inside", "rdma")}}


def check_shipped(cluster: ClusterFile) -> None:
    """Raise ``ValueError`` for parts of a cluster that the timing models do not take.

    They load profiles by name, and choose the NIC for the model.
    """
    for field in ("network", "gpu", "gpu_link"):
        profile = getattr(cluster, field)
        if profile is not None and (profile.name not in profile_names() or profile != load_profile(
                profile.name, type(profile))):
            raise ValueError(f"{field} must be a profile that ships, not {profile.name!r} of a "
                             "file")
    if cluster.inside is not None and cluster.inside not in profile_names("topology_"):
        raise ValueError(f"inside must be one of {', '.join(profile_names('topology_'))}, "
                         f"not {cluster.inside!r}")
    if cluster.pcie != load_profile(SMARTNIC_LINK, PcieProfile):
        raise ValueError(f"pcie must be {SMARTNIC_LINK}, not {cluster.pcie.name!r}")
    if cluster.nic.settings:
        raise ValueError(f"nic must have the sizes of its preset, not {cluster.nic.settings!r}")
