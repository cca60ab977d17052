"""What a point consists of: a workload, a cluster, and the options of a system."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Self

from host.batching import ALGORITHMS
from host.bounds import check_known, check_least
from host.devices.dense_work import LEVELS
from host.devices.software import SoftwareProfile
from host.placement.deal import check_placement
from host.systems import Devices
from host.toml.profile import load_profile, profile_names
from sim.job.simulation import FIDELITIES

__all__ = ["DATASETS", "DEPTHS", "MINI_BATCH", "PER_GRAPH", "SETTING_NAMES", "WORKLOADS",
           "CardOptions", "Cluster", "EnOptions", "Fields", "Flights", "NicOptions", "Options",
           "SmartNicOptions", "Workload", "dealt", "devices_of", "software_names"]

MINI_BATCH = {"kaggle": 128, "terabyte": 2048, "avazu": 128}
"""Samples of a mini-batch over all nodes, by data set: the reference setting."""

DATASETS = tuple(MINI_BATCH)
DEPTHS = (1, 2, 4, 8, 16)
"""Mini-batches in flight from which a system chooses in inference: a NIC can have no more open."""

PER_GRAPH = (1, 2, 4, 8)
"""Mini-batches of a graph from which a system chooses in inference."""

Flights = tuple[tuple[int, int], ...]
"""Numbers of mini-batches in flight, each with how many of them are in a graph."""

WORKLOADS = ("inference", "training")
SETTING_NAMES = ("reference", "paper-like")


@cache
def software_names() -> tuple[str, ...]:
    """Return the software profiles that ship, without their prefix."""
    return tuple(name.removeprefix("software_") for name in profile_names("software_"))


@cache
def _has_graphs(software: str) -> bool:
    return load_profile(f"software_{software}", SoftwareProfile).graphs


@dataclass(frozen=True)
class Workload:
    """Mini-batches, and what is done with them.

    Members
    -------
    dataset: its shape and model, one of `DATASETS`.
    workload: ``inference`` or ``training``.
    mini_batch: samples of a global mini-batch; None for those of the reference setting.
    batching: how mini-batches are formed: ``file``, ``sort``, ``greedy``, ``graph``; all but
        ``file`` from a ``window`` of samples, None for 16 mini-batches.
    seed: of rows, weights, generated samples and arrivals.
    data, format: files of samples and their format; without, the generator makes them.
    warmup, measured: mini-batches, those before that warm the caches and those that are measured.
    """

    dataset: str = "kaggle"
    workload: str = "inference"
    mini_batch: int | None = None
    batching: str = "file"
    window: int | None = None
    seed: int = 1
    data: tuple[str, ...] = ()
    format: str | None = None
    warmup: int = 32
    measured: int = 32

    def __post_init__(self) -> None:
        check_known(self, dataset=DATASETS, workload=WORKLOADS, batching=tuple(ALGORITHMS))
        check_least(self, seed=0, warmup=0, measured=2, mini_batch=1, window=self.samples)
        if self.format is not None and not self.data:
            raise ValueError(f"format must go with data, not {self.format!r} alone")

    @property
    def training(self) -> bool:
        """Whether the mini-batches are trained on."""
        return self.workload == "training"

    @property
    def samples(self) -> int:
        """Samples of a mini-batch over all nodes."""
        return self.mini_batch or MINI_BATCH[self.dataset]


@dataclass(frozen=True)
class Cluster:
    """Nodes and their profiles, for every system alike.

    Members
    -------
    nodes: of the cluster. placement: of the tables over them; one of
        :data:`host.placement.deal.PLACEMENTS`, or the node of each table, such as ``0,0,1``.
    software: profile ``eager`` or ``tuned``, or one measured on a machine, ``tuned_h100``.
    gpu: profile of the GPU of each node.
    scaled: (profile.constant, factor) for each constant that a sensitivity sweep changes, such as
        ``("gpu_rtx8000.launch_us", 0.5)``; names as :func:`host.toml.provenance.constants` lists
        them.
    kernels: how much a kernel of the GPU does, one of :data:`host.devices.dense_work.LEVELS`; None
        for what the software profile says.
    threads: of a host that call operators. communicators: of NCCL in each GPU, each of which does
        one collective after the other, see :mod:`host.systems.program`. grouped: whether one call
        of NCCL does an exchange for all mini-batches of a graph.
    """

    nodes: int = 4
    placement: str = "even"
    software: str = "eager"
    gpu: str = "gpu_rtx8000"
    scaled: tuple[tuple[str, float], ...] = ()
    kernels: int | None = None
    threads: int = 1
    communicators: int = 1
    grouped: bool = False

    def __post_init__(self) -> None:
        check_known(self, software=software_names(), gpu=profile_names("gpu_"))
        check_placement(self.placement)
        check_least(self, nodes=1, threads=1, communicators=1)
        if self.kernels is not None and self.kernels not in LEVELS:
            raise ValueError(f"kernels must be one of {', '.join(map(str, LEVELS))}, "
                             f"not {self.kernels!r}")
        for name, factor in self.scaled:
            if not factor > 0:
                raise ValueError(f"scaled must be above 0, not {factor!r} for {name}")


@dataclass(frozen=True)
class Options:
    """A system, and the options that it does not choose: those of a system without NICs.

    Members
    -------
    system: a canonical name, see :mod:`sim.evaluation.systems`.
    in_flight: mini-batches under way; None for 1 in training, and in inference for that of
        `DEPTHS` with which the system is fastest.
    per_graph: mini-batches in flight that the host's thread launches as one graph and waits for at
        once, see :mod:`host.systems.shared_graph`; None for that of `PER_GRAPH` with which the
        system is fastest. It is 1 in training, with eager software, and of a system that has no
        part in it.
    """

    system: str
    in_flight: int | None = None
    per_graph: int | None = 1

    # Of a system that does not have them: constants, no fields.
    fidelity = "model"
    local_cache = remote_cache = 0.0
    settings = en = ()
    persistent_gather, copied_rows = False, 0

    def __post_init__(self) -> None:
        check_known(self, fidelity=FIDELITIES)
        check_least(self, in_flight=1, per_graph=1, copied_rows=0)
        for name in ("local_cache", "remote_cache"):
            if (value := getattr(self, name)) is not None and not 0 <= value <= 1:
                raise ValueError(f"{name} must be between 0 and 1, not {value!r}")


@dataclass(frozen=True)
class NicOptions(Options):
    """The options of a system with NICs.

    Members
    -------
    fidelity: of the NIC, ``rtl`` or ``model``.
    local_cache, remote_cache: rows of each cache as a share of the unique keys that reach it, of
        the mean node; 0 is a NIC without the cache, None the size in the preset. Ignored by systems
        without the cache.
    settings: further ``field=value`` of the NIC, such as ``requester_merge=true``.
    """

    fidelity: str = "model"
    local_cache: float | None = 0.1
    remote_cache: float | None = 0.1
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class CardOptions(NicOptions):
    """The options of everything on the NIC. Members: ``copied_rows``, tables of at most so many
    rows have a copy at every node, in inference."""

    copied_rows: int = 0


@dataclass(frozen=True)
class SmartNicOptions(CardOptions):
    """The options of GPUs with the paper's SmartNICs. Members: ``persistent_gather``, whether a
    kernel that never ends serves the NICs' lookups on the GPU, so that no call of the host launches
    a gather."""

    persistent_gather: bool = False


@dataclass(frozen=True)
class EnOptions(NicOptions):
    """The options of EN. Members: ``en``, ``name=value`` for each option that EN does not choose,
    such as ``ring=false``, see :class:`host.systems.en_tuning.EnTuning`."""

    en: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fields(ABC):
    """The parts of a point. :class:`sim.evaluation.point.Point` checks them against its system."""

    workload: Workload
    cluster: Cluster
    system: Options

    def changed(self, **values: Any) -> Self:
        """Return the point with other values of fields of its parts, such as ``seed=2``."""
        parts = vars(self)
        return replace(self, **{name: replace(parts[name], **own) for name, own in dealt(
            parts, values, vars(self.system)).items()})

    @property
    @abstractmethod
    def kind(self) -> Any:
        """The system, see :mod:`sim.evaluation.system`."""

    @property
    def depths(self) -> tuple[int, ...]:
        """Numbers of mini-batches under way that the system may choose from."""
        if self.system.in_flight is not None:
            return (self.system.in_flight,)
        return (1,) if self.workload.training else DEPTHS

    @property
    def most_per_graph(self) -> int:
        """Mini-batches of a graph at most."""
        graphs = self.kind.in_graphs and _has_graphs(self.cluster.software)
        return max(self.depths) if graphs else 1

    @property
    def flights(self) -> Flights:
        """What the system may choose from: mini-batches under way, and how many of them are in a
        graph; the least of both first."""
        sizes = PER_GRAPH if self.system.per_graph is None else (self.system.per_graph,)
        return tuple((depth, size) for depth in self.depths for size in sizes
                     if size <= min(depth, self.most_per_graph))

    @property
    def sets_of_flights(self) -> tuple[Flights, ...]:
        """Those of `flights` in which each mini-batch is a graph, where there are some, and all:
        a search in each of them makes sure that no further choice does harm."""
        single = tuple(flight for flight in self.flights if flight[1] == 1)
        return tuple(dict.fromkeys((single or self.flights, self.flights)))


def dealt(parts: Mapping[str, Any], own: dict, common: dict | None = None) -> dict[str, dict]:
    """Return values of fields by the part that has them: all of ``own``, and those of ``common``
    that there are.

    ``parts``: by name, dataclasses or their classes. ``ValueError`` for one of ``own`` that no part
    has.
    """
    values = (common or {}) | own
    found = {name: {each.name: values[each.name] for each in fields(part) if each.name in values}
             for name, part in parts.items()}
    if unknown := own.keys() - {name for each in found.values() for name in each}:
        raise ValueError(f"{min(unknown)} must go with a system that has it, not with "
                         f"{values['system']!r}")
    return found


def devices_of(cluster: Cluster) -> Devices:
    """Return the devices of a cluster's nodes, as its profiles, constants and choices say."""
    return Devices.load(cluster.nodes, cluster.software, cluster.gpu, cluster.scaled,
                        cluster.kernels, cluster.threads, cluster.communicators, cluster.grouped)
