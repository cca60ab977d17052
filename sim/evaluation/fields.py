"""Fields of a point: a workload, a cluster, and the options of a system."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from typing import Any, Self

from host.batching import ALGORITHMS
from host.bounds import check_known, check_least
from host.data.contents import contents
from host.devices.software import SoftwareProfile
from host.model import Model, load_model, model_files
from host.systems import UPDATES, Devices
from host.toml.profile import load_profile
from sim.evaluation.cluster import Cluster
from sim.job.fit import preset_of
from sim.job.simulation import FIDELITIES

__all__ = ["DATASETS", "DEPTHS", "MINI_BATCH", "PER_GRAPH", "SETTING_NAMES", "WORKLOADS",
           "CardOptions", "Fields", "Flights", "NicOptions", "Options", "SmartNicOptions",
           "Workload", "dealt", "devices_of", "mini_batch_of", "model_of"]

MINI_BATCH = {"kaggle": 128, "terabyte": 2048, "avazu": 128}
"""Samples of a mini-batch over all nodes in the reference setting, by data set."""

DATASETS = tuple(MINI_BATCH)
DEPTHS = (1, 2, 4, 8, 16)
"""Mini-batches in flight from which a system chooses in inference. A NIC has at most 16 open."""

PER_GRAPH = (1, 2, 4, 8)
"""Mini-batches per CUDA graph from which a system chooses in inference."""

Flights = tuple[tuple[int, int], ...]
"""Pairs: mini-batches in flight, and mini-batches per graph."""

WORKLOADS = ("inference", "training")
SETTING_NAMES = ("reference", "paper-like")


def mini_batch_of(dataset: str | Model) -> int:
    """Return the samples of a global mini-batch that a data set or model is evaluated with."""
    if isinstance(dataset, str) and dataset in MINI_BATCH:
        return MINI_BATCH[dataset]
    return min(model_of(dataset).mini_batches, default=2048)


def model_of(dataset: str | Model) -> Model:
    """Return the model of a data set; a file is read once until it changes."""
    return _model(dataset, contents(model_files(dataset)))


@lru_cache(maxsize=16)
def _model(dataset: str | Model, read: tuple[str, ...]) -> Model:
    return load_model(dataset)


@cache
def _has_graphs(software: str) -> bool:
    return load_profile(f"software_{software}", SoftwareProfile).graphs


@dataclass(frozen=True)
class Workload:
    """Mini-batches, and whether they are inference or training.

    Members
    -------
    dataset: one of `DATASETS`, the name of another model or of a model file, or a model.
    workload: ``inference`` or ``training``.
    mini_batch: samples of a global mini-batch; None for the reference setting's.
    batching: ``file``, ``sort``, ``greedy`` or ``graph``.
    window: samples from which mini-batches are formed, not for ``file``; None for 16 mini-batches.
    seed: seed of rows, weights, generated samples and arrivals.
    data, format: files of samples and their format; the generator makes samples if empty.
    warmup, measured: mini-batches that warm the caches, and mini-batches that are measured.
    """

    dataset: str | Model = "kaggle"
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
        check_known(self, workload=WORKLOADS, batching=tuple(ALGORITHMS))
        model_of(self.dataset)
        check_least(self, seed=0, warmup=0, measured=2, mini_batch=1, window=self.samples)
        if self.format is not None and not self.data:
            raise ValueError(f"format must go with data, not {self.format!r} alone")

    @property
    def training(self) -> bool:
        """Whether the workload is training."""
        return self.workload == "training"

    @property
    def samples(self) -> int:
        """Samples of a mini-batch over all nodes."""
        return self.mini_batch or mini_batch_of(self.dataset)

    @property
    def preset(self) -> str:
        """Preset of the NICs: the data set's, or the smaller one that holds the vectors."""
        if self.of_paper:
            return self.name
        return preset_of(model_of(self.dataset).width)

    @property
    def of_paper(self) -> bool:
        """Whether the model is one of `DATASETS`."""
        return isinstance(self.dataset, str) and self.dataset in DATASETS

    @property
    def name(self) -> str:
        """Name of the data set or model."""
        return self.dataset if isinstance(self.dataset, str) else self.dataset.name


@dataclass(frozen=True)
class Options:
    """A system and its options. This class serves systems without NICs.

    Members
    -------
    system: canonical name, see :mod:`sim.evaluation.systems`.
    in_flight: mini-batches in flight; None for 1 in training, and for the fastest of `DEPTHS` in
        inference.
    per_graph: mini-batches in flight that the host thread launches as one graph and waits for
        together, see :mod:`host.systems.shared_graph`; None for the fastest of `PER_GRAPH`. It is 1
        in training, with eager software, and for systems without graphs.
    fixed: ``name=value`` of each searched option that the point fixes, such as ``threads=1``; see
        the system's class of options.
    """

    system: str
    in_flight: int | None = None
    per_graph: int | None = 1
    fixed: tuple[str, ...] = ()

    # Constants of systems without these options, not fields.
    fidelity = "model"
    local_cache = remote_cache = 0.0
    settings = ()
    sampled = None
    persistent_gather, copied_rows, owner_tables, own_bags, repeats = False, 0, (), "nic", "send"
    update = UPDATES[0]

    def __post_init__(self) -> None:
        check_known(self, fidelity=FIDELITIES)
        check_least(self, in_flight=1, per_graph=1, copied_rows=0, sampled=1)
        for name in ("local_cache", "remote_cache"):
            if (value := getattr(self, name)) is not None and not 0 <= value <= 1:
                raise ValueError(f"{name} must be between 0 and 1, not {value!r}")


@dataclass(frozen=True)
class NicOptions(Options):
    """Options of a system with NICs.

    Members
    -------
    fidelity: fidelity of the NIC, ``rtl`` or ``model``.
    local_cache, remote_cache: rows of each cache as a share of the unique keys that reach it (mean
        node); 0 for a NIC without the cache, None for the preset's size. Systems without the cache
        ignore it.
    settings: further ``field=value`` of the NIC, such as ``requester_merge=true``.
    sampled: samples of the mini-batches that NICs run, if they run smaller mini-batches than the
        workload's: their intervals and counts are multiplied by the ratio. None for whole
        mini-batches. Inference only.
    """

    fidelity: str = "model"
    local_cache: float | None = 0.1
    remote_cache: float | None = 0.1
    settings: tuple[str, ...] = ()
    sampled: int | None = None


@dataclass(frozen=True)
class CardOptions(NicOptions):
    """Options of everything on the NIC. Members: ``copied_rows``, in inference, every node has a
    copy of each table of at most this many rows."""

    copied_rows: int = 0


@dataclass(frozen=True)
class SmartNicOptions(CardOptions):
    """Options of GPUs with the paper's SmartNICs. Members: ``persistent_gather``, whether a
    persistent kernel serves the NICs' lookups on the GPU instead of gathers that the host launches;
    ``pace_us``, least time from one such launch to the next (a system searches longer times);
    ``owner_tables``, numbers of the tables that pool at their owner, see
    :func:`sim.evaluation.pooling.owner_tables`; ``update``, the place that updates their rows in
    training, one of `host.systems.UPDATES`; ``repeats``, without interaction on the NIC, the
    repeated bags that are not sent, and ``own_bags``, both as of
    :class:`sim.job.workload.Workload`. In training, GPUs add the gradients of repeats.
    """

    persistent_gather: bool = False
    pace_us: float = 0.0
    owner_tables: tuple[int, ...] = ()
    update: str = UPDATES[0]
    own_bags: str = "nic"
    repeats: str = "send"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, pace_us=0)


@dataclass(frozen=True)
class Fields(ABC):
    """The parts of a point. :class:`sim.evaluation.point.Point` checks them against its system."""

    workload: Workload
    cluster: Cluster
    system: Options

    def changed(self, **values: Any) -> Self:
        """Return the point with other values of its fields, such as ``seed=2``."""
        parts = vars(self)
        return replace(self, **{name: replace(parts[name], **own) for name, own in dealt(
            parts, values, vars(self.system)).items()})

    @property
    @abstractmethod
    def kind(self) -> Any:
        """The system, see :mod:`sim.evaluation.system`."""

    @property
    def depths(self) -> tuple[int, ...]:
        """Numbers of mini-batches in flight that the system may choose from."""
        if self.system.in_flight is not None:
            return (self.system.in_flight,)
        return (1,) if self.workload.training else DEPTHS

    @property
    def most_per_graph(self) -> int:
        """Most mini-batches in a graph."""
        graphs = self.kind.in_graphs and _has_graphs(self.cluster.software)
        return max(self.depths) if graphs else 1

    @property
    def flights(self) -> Flights:
        """Flights that the system may choose from, the smallest first."""
        sizes = PER_GRAPH if self.system.per_graph is None else (self.system.per_graph,)
        return tuple((depth, size) for depth in self.depths for size in sizes
                     if size <= min(depth, self.most_per_graph))

    @property
    def sets_of_flights(self) -> tuple[Flights, ...]:
        """The flights with one mini-batch per graph, if there are any, and all flights. The search
        runs in both, so that an added choice cannot make the result worse."""
        single = tuple(flight for flight in self.flights if flight[1] == 1)
        return tuple(dict.fromkeys((single or self.flights, self.flights)))


def dealt(parts: Mapping[str, Any], own: dict, common: dict | None = None) -> dict[str, dict]:
    """Return the values of fields by the part that declares them: all of ``own``, and the fields of
    ``common`` that exist.

    ``parts``: dataclasses or their classes, by name. ``ValueError`` if a field of ``own`` belongs
    to no part.
    """
    values = (common or {}) | own
    found = {name: {each.name: values[each.name] for each in fields(part) if each.name in values}
             for name, part in parts.items()}
    if unknown := own.keys() - {name for each in found.values() for name in each}:
        raise ValueError(f"{min(unknown)} must go with a system that has it, not with "
                         f"{values['system']!r}")
    return found


def devices_of(cluster: Cluster) -> Devices:
    """Return the devices of a cluster's nodes, from its profiles, scaled constants and options."""
    return Devices.load(cluster.nodes, cluster.software, cluster.gpu, cluster.scaled,
                        cluster.kernels, cluster.link, cluster.network, cluster.rdma,
                        cluster.gpus, cluster.nics, cluster.inside, cluster.mtu)
