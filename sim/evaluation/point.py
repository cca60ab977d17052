"""A point of the evaluation: one system, one workload, one setting, one set of metrics."""

from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from host.batching import ALGORITHMS
from host.devices.dense_work import LEVELS
from host.devices.software import SoftwareProfile
from host.placement.deal import check_placement
from host.systems.en_tuning import en_tunings, fixed_of
from host.toml.profile import load_profile, profile_names
from sim.evaluation.systems import BASELINES, EN, canonical, parts_of

__all__ = ["DATASETS", "DEPTHS", "MINI_BATCH", "PER_GRAPH", "WORKLOADS", "Flights",
           "Point", "software_names"]

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
FIDELITIES = ("model", "rtl")


@cache
def software_names() -> tuple[str, ...]:
    """Return the software profiles that ship, without their prefix."""
    return tuple(name.removeprefix("software_") for name in profile_names("software_"))


@cache
def _has_graphs(software: str) -> bool:
    return load_profile(f"software_{software}", SoftwareProfile).graphs


@dataclass(frozen=True)
class Point:
    """What is evaluated. Hashable; :meth:`to_json` and :meth:`of` go to JSON and back.

    Members
    -------
    dataset: its shape and model, one of `DATASETS`.
    system: a canonical name, see :mod:`sim.evaluation.systems`; :meth:`named` takes ``fs``
        and ``ga`` too.
    workload: ``inference`` or ``training``.
    nodes: of the cluster. placement: of the tables over them, for every system alike; one of
        :data:`host.placement.deal.PLACEMENTS`, or the node of each table, such as ``0,0,1``.
    mini_batch: samples of a global mini-batch; None for those of the reference setting.
    software: profile ``eager`` or ``tuned``, or one measured on a machine, ``tuned_h100``; charged
        to every system alike.
    gpu: profile of the GPU of each node.
    fidelity: of the NIC, ``rtl`` or ``model``; systems without one do not depend on it.
    batching: how mini-batches are formed: ``file``, ``sort``, ``greedy``, ``graph``; all but
        ``file`` from a ``window`` of samples, None for 16 mini-batches.
    local_cache, remote_cache: rows of each cache as a share of the unique keys that reach it, of
        the mean node; 0 for none, None for what the preset has. Ignored by systems without it.
    in_flight: mini-batches under way; None for 1 in training, and in inference for that of
        `DEPTHS` with which the system is fastest.
    per_graph: mini-batches in flight that the host's thread launches as one graph and waits for at
        once, see :mod:`host.systems.shared_graph`; None for that of `PER_GRAPH` with which the
        system is fastest. It is 1 in training, with eager software, and of a system that has no
        part in it: ``bl-paper``, which is not tuned, ``cpu-mpi`` and ``all-on-nic``.
    seed: of rows, weights, generated samples and arrivals.
    data, format: files of samples and their format; without, the generator makes them.
    warmup, measured: mini-batches, those before that warm the caches and those that are measured.
    scaled: (profile.constant, factor) for each constant that a sensitivity sweep changes, such as
        ``("gpu_rtx8000.launch_us", 0.5)``; names as :func:`host.toml.provenance.constants` lists
        them.
    settings: further ``field=value`` of the NIC, such as ``requester_merge=true``.
    persistent_gather: whether a kernel that never ends serves the NICs' lookups on the GPU, so that
        no call of the host launches a gather: a separate, labelled point. Systems with NICs only.
    kernels: how much a kernel of the GPU does, one of :data:`host.devices.dense_work.LEVELS`; None
        for what the software profile says.
    threads: of a host that call operators. communicators: of NCCL in each GPU, each of which does
        one collective after the other, see :mod:`host.systems.program`. grouped: whether one call
        of NCCL does an exchange for all mini-batches of a graph.
    copied_rows: tables of at most so many rows have a copy at every node, in inference by systems
        with NICs; bl-tuned and EN choose their own number.
    en: ``name=value`` for each option that EN does not choose, such as ``ring=false``, see
        :class:`host.systems.en_tuning.EnTuning`; of EN only.

    Raises ``ValueError`` that names field, value and bound.
    """

    dataset: str = "kaggle"
    system: str = "bl-paper"
    workload: str = "inference"
    nodes: int = 4
    mini_batch: int | None = None
    software: str = "eager"
    gpu: str = "gpu_rtx8000"
    fidelity: str = "model"
    batching: str = "file"
    window: int | None = None
    local_cache: float | None = 0.1
    remote_cache: float | None = 0.1
    in_flight: int | None = None
    per_graph: int | None = 1
    seed: int = 1
    data: tuple[str, ...] = ()
    format: str | None = None
    warmup: int = 32
    measured: int = 32
    scaled: tuple[tuple[str, float], ...] = ()
    settings: tuple[str, ...] = ()
    persistent_gather: bool = False
    kernels: int | None = None
    placement: str = "even"
    copied_rows: int = 0
    threads: int = 1
    communicators: int = 1
    grouped: bool = False
    en: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, known in (("dataset", DATASETS), ("workload", WORKLOADS),
                            ("software", software_names()), ("fidelity", FIDELITIES),
                            ("batching", tuple(ALGORITHMS)), ("gpu", profile_names("gpu_"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, "
                                 f"not {getattr(self, name)!r}")
        check_placement(self.placement)
        if (system := canonical(self.system, self.workload)) != (self.system, False):
            raise ValueError(f"system must be the canonical {system[0]}, not {self.system!r}")
        for name, least in (("nodes", 1), ("seed", 0), ("warmup", 0), ("measured", 2),
                            ("copied_rows", 0), ("threads", 1), ("communicators", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)!r}")
        for name, least in (("mini_batch", 1), ("in_flight", 1), ("per_graph", 1),
                            ("window", self.samples)):
            if (value := getattr(self, name)) is not None and value < least:
                raise ValueError(f"{name} must be at least {least}, not {value!r}")
        for name in ("local_cache", "remote_cache"):
            if (value := getattr(self, name)) is not None and not 0 <= value <= 1:
                raise ValueError(f"{name} must be between 0 and 1, not {value!r}")
        if self.workload == "training" and self.depths != (1,):
            raise ValueError(f"in_flight must be 1 in training, not {self.in_flight!r}")
        if not self.flights:
            raise ValueError(f"per_graph must be at most {self.most_per_graph} here, "
                             f"not {self.per_graph!r}")
        if self.format is not None and not self.data:
            raise ValueError(f"format must go with data, not {self.format!r} alone")
        if self.nodes < 2 and self.system == "cpu-mpi":
            raise ValueError(f"nodes must be at least 2 of cpu-mpi, not {self.nodes!r}")
        if self.persistent_gather and self.system in (*BASELINES, "all-on-nic", EN):
            raise ValueError(f"persistent_gather must go with a system of GPUs and SmartNICs, "
                             f"not with {self.system!r}")
        if self.kernels is not None and self.kernels not in LEVELS:
            raise ValueError(f"kernels must be one of {', '.join(map(str, LEVELS))}, "
                             f"not {self.kernels!r}")
        if self.en and self.system != EN:
            raise ValueError(f"en must go with the system en, not with {self.system!r}")
        en_tunings(self.workload == "training", fixed_of(self.en))
        if self.copied_rows and (self.workload == "training" or self.system in (*BASELINES, EN)):
            raise ValueError(f"copied_rows must be 0 in training, of a baseline and of EN, "
                             f"not {self.copied_rows!r} of {self.system} in {self.workload}")
        for name, factor in self.scaled:
            if not factor > 0:
                raise ValueError(f"scaled must be above 0, not {factor!r} for {name}")

    @property
    def samples(self) -> int:
        """Samples of a mini-batch over all nodes."""
        return self.mini_batch or MINI_BATCH[self.dataset]

    @property
    def depths(self) -> tuple[int, ...]:
        """Numbers of mini-batches under way that the system may choose from."""
        if self.in_flight is not None:
            return (self.in_flight,)
        return (1,) if self.workload == "training" else DEPTHS

    @property
    def most_per_graph(self) -> int:
        """Mini-batches of a graph at most."""
        if self.system in ("bl-paper", "cpu-mpi", "all-on-nic") or not _has_graphs(self.software):
            return 1
        return max(self.depths)

    @property
    def flights(self) -> Flights:
        """What the system may choose from: mini-batches under way, and how many of them are in a
        graph; the least of both first."""
        sizes = PER_GRAPH if self.per_graph is None else (self.per_graph,)
        return tuple((depth, size) for depth in self.depths for size in sizes
                     if size <= min(depth, self.most_per_graph))

    @property
    def sets_of_flights(self) -> tuple[Flights, ...]:
        """Those of `flights` in which each mini-batch is a graph, where there are some, and all:
        a search in each of them makes sure that no further choice does harm."""
        single = tuple(flight for flight in self.flights if flight[1] == 1)
        return tuple(dict.fromkeys((single or self.flights, self.flights)))

    @property
    def label(self) -> str:
        """Name for people, such as ``BL``, ``GA+LC`` or ``FS``."""
        parts = parts_of(self.system)
        graph = self.batching == "graph"
        everything = {"lc", "sc"} if self.workload == "training" else {"lc", "rc", "sc"}
        if parts == everything and graph:
            return "FS"
        base = self.system.upper() if parts and self.system != EN else {
            "bl-paper": "BL", "bl-tuned": "BL-tuned", "cpu-mpi": "CPU-MPI", "nic": "NIC alone",
            "all-on-nic": "all on the NIC", "en": "EN"}[self.system]
        return base if self.batching == "file" else f"{'GA' if graph else self.batching}+{base}"

    @classmethod
    def named(cls, system: str, **fields: Any) -> "Point":
        """Return the point of a system whose name may have ``ga`` or be ``fs``.

        With ``ga``, mini-batches are formed by the graph algorithm unless ``batching`` is given.
        """
        name, graph = canonical(system, fields.get("workload", "inference"))
        return cls(system=name, **({"batching": "graph"} if graph else {}) | fields)

    @classmethod
    def of(cls, values: dict) -> "Point":
        """Return the point of what :meth:`to_json` gave."""
        lists = {"data": tuple(values.get("data", ())),
                 "settings": tuple(values.get("settings", ())),
                 "en": tuple(values.get("en", ())),
                 "scaled": tuple((name, factor) for name, factor in values.get("scaled", ()))}
        return cls(**values | lists)

    def to_json(self) -> dict:
        """Return the members as plain values."""
        return asdict(self) | {"data": list(self.data), "settings": list(self.settings),
                               "en": list(self.en),
                               "scaled": [list(pair) for pair in self.scaled]}
