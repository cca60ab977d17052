"""Cluster files as fields of a point."""

from typing import Any

from host.systems.devices import SMARTNIC_LINK
from host.timing.cluster import Cluster
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile, profile_names

__all__ = ["check_shipped", "cluster_fields"]


def cluster_fields(cluster: Cluster) -> dict[str, Any]:
    """Return the values of :class:`sim.evaluation.fields.Cluster` that a cluster file gives."""
    return {"gpu": cluster.gpu.name, "network": cluster.network.name,
            "link": cluster.gpu_link and cluster.gpu_link.name,
            **{name: getattr(cluster, name)
               for name in ("nodes", "software", "gpus", "nics", "inside", "rdma")}}


def check_shipped(cluster: Cluster) -> None:
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
