"""Cluster descriptions: nodes, their network, and the devices of each."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path

from host.bounds import check_value
from host.reading import read_whole
from host.timing.gpu import GpuProfile
from host.timing.network import NetworkProfile
from host.timing.pcie import PcieProfile
from host.toml.profile import load_profile
from host.toml.schema import MOST_BYTES, read_toml
from rtl.config import NicConfig, check_dimension, preset

__all__ = [
    "CACHES", "Cluster", "Nic", "check_gpus", "cluster_files", "cluster_names", "load_cluster",
    "row_bytes",
]

CACHES = ("local_cache", "remote_cache")
"""Possible caches of a NIC; implemented caches have a field ``..._rows`` in ``NicConfig``."""


def row_bytes(dimension: int) -> int:
    """Return the bytes of a vector of ``dimension`` float32 values."""
    return 4 * dimension


@dataclass(frozen=True)
class Nic:
    """The NIC of every node.

    Members
    -------
    config: preset of its sizes.
    local_cache_size_bytes, remote_cache_size_bytes: capacity of the caches in bytes of vectors; the
        default is the preset's.
    set: changes of the preset's fields and of registers, in the form of ``--set``.

    Raises ``TypeError`` or ``ValueError`` for an impossible configuration. Names in ``set`` that
    are not fields of `NicConfig` are checked when registers are written.
    """

    config: str = "kaggle"
    local_cache_size_bytes: int | None = None
    remote_cache_size_bytes: int | None = None
    set: dict[str, int | bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self._sizes().keys() & self.set.keys():
            raise ValueError(f"{name} must be given once, here or by the size of the cache")
        self.configure()

    def configure(self) -> NicConfig:
        """Return the sizes of the NIC."""
        known = {field.name for field in fields(NicConfig)}
        sizes = self._sizes()
        try:
            return preset(self.config).with_fields(**sizes, **{
                name: value for name, value in self.set.items() if name in known})
        except ValueError as error:
            for name in sizes:
                if str(error).startswith(f"{name} "):
                    size = name.removesuffix("_rows") + "_size"
                    raise ValueError(f"{size} is wrong: {error}") from None
            raise

    @property
    def settings(self) -> tuple[str, ...]:
        """The changes as ``field=value``."""
        values = self._sizes() | self.set
        return tuple(f"{name}={str(value).lower()}" for name, value in values.items())

    def _sizes(self) -> dict[str, int]:
        """Return the rows of each cache whose size is given in bytes."""
        base = preset(self.config)
        dimension = self.set.get("max_dimension", base.max_dimension)
        try:
            check_dimension("max_dimension", dimension)
        except (TypeError, ValueError):
            return {}  # with_fields rejects the configuration
        rows = {}
        for cache in CACHES:
            size = getattr(self, f"{cache}_size_bytes")
            if size is None:
                continue
            if not hasattr(base, f"{cache}_rows"):
                raise ValueError(f"{cache}_size must be left out: the cache is not supported")
            if size % row_bytes(dimension):
                raise ValueError(f"{cache}_size must be a multiple of a vector, "
                                 f"{row_bytes(dimension)} B, not {size} B")
            rows[f"{cache}_rows"] = size // row_bytes(dimension)
        return rows


@dataclass(frozen=True)
class Cluster:
    """The description that ``--cluster`` selects.

    Members
    -------
    nodes: number of nodes.
    network, pcie, gpu: profiles of the links and of the GPU of each node.
    gpu_memory_bytes: memory of each GPU, which holds the rows.
    host_memory_bytes: memory of a node's host.
    card_memory_bytes: HBM on the SmartNIC's card.
    nic: the SmartNIC.
    name: appears in reports.
    gpu_link: profile of the GPU's own PCIe link, which systems without the SmartNIC use; by
        default that of ``pcie``.
    software: name of the software profile, without its prefix; by default ``eager``.
    rdma: whether the GPUs' own NICs and the network let a kernel write to a remote GPU.
    gpus: GPUs (endpoints) per node.
    nics: NICs per node, 1 or another divisor of ``gpus``; each serves an equal part of the GPUs.
    inside: name of the topology profile that joins the GPUs of a node; None for a single GPU.
    """

    nodes: int
    network: NetworkProfile
    pcie: PcieProfile
    gpu: GpuProfile
    gpu_memory_bytes: int
    host_memory_bytes: int
    card_memory_bytes: int
    nic: Nic = field(default_factory=Nic)
    name: str = "custom"
    gpu_link: PcieProfile | None = None
    software: str = "eager"
    rdma: bool = False
    gpus: int = 1
    nics: int = 1
    inside: str | None = None

    def __post_init__(self) -> None:
        most = self.nic.configure().nodes
        if not 1 <= self.nodes <= most:
            raise ValueError(f"nodes must be between 1 and {most}, those of config "
                             f"{self.nic.config}, not {self.nodes!r}")
        check_gpus(self.gpus, self.nics, self.inside)
        for name in ("gpu_memory", "host_memory", "card_memory"):
            if getattr(self, f"{name}_bytes") < 0:
                raise ValueError(f"{name} must be at least 0 B, "
                                 f"not {getattr(self, f'{name}_bytes')} B")


def check_gpus(gpus: int, nics: int, inside: str | None) -> None:
    """Raise ``ValueError`` for impossible GPUs, NICs or links of a node, see `Cluster`."""
    check_value("gpus", gpus, least=1)
    check_value("nics", nics, least=1)
    if gpus % nics:
        raise ValueError(f"nics must divide the {gpus} gpus of a node, not {nics!r}")
    if (inside is None) != (gpus == 1):
        raise ValueError(f"inside must be given where a node has several GPUs, and only there, "
                         f"not {inside!r} for {gpus}")


def _folder():
    # Not a package name: a user's program may shadow it, see embernic_names.
    return Path(__file__).parents[1] / "clusters"


def cluster_names() -> list[str]:
    """Return the names of the shipped clusters."""
    return sorted(file.name.removesuffix(".toml") for file in _folder().iterdir()
                  if file.name.endswith(".toml"))


def cluster_files(name_or_path: str | Path) -> list[Path]:
    """Return the files that `load_cluster` reads: the cluster file and the profiles that it names.

    Empty for a shipped cluster. `load_cluster` reports malformed content.
    """
    path = Path(name_or_path)
    if str(name_or_path) in cluster_names():
        return []
    try:
        content = tomllib.loads(read_whole(path, MOST_BYTES).decode()) if path.is_file() else {}
    except (OSError, ValueError, RecursionError):
        return [path]
    return [path, *(path.parent / text for text in content.values()
                    if isinstance(text, str) and text.endswith(".toml"))]


def load_cluster(name_or_path: str | Path,
                 check: Callable[[Cluster], object] = lambda cluster: None) -> Cluster:
    """Return the cluster of that name, or read a TOML file.

    Profile paths in a file are relative to its folder.

    check: may raise ``ValueError`` for clusters that the caller does not support.

    Raises
    ------
    ValueError
        Neither a known name nor the name of a TOML file.
    InputError
        The file is malformed, or ``check`` rejects it; the error contains the position.
    """
    name = str(name_or_path)
    if name in cluster_names():
        path = str(_folder() / f"{name}.toml")
    elif name.endswith(".toml") or Path(name).is_file():
        path = name
    else:
        raise ValueError(f"cluster must be one of {', '.join(cluster_names())} or a TOML file, "
                         f"not {name!r}")

    def named(text: str, kind: type):
        if kind is Nic:
            raise ValueError(f"must be a table, not {text!r}")
        return load_profile(text, kind, Path(path).parent)

    return read_toml(path, Cluster, named, check)
