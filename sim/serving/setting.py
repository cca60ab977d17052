"""Setting of ``serve``, and its parts that are measured and stored separately."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from host.model import Model
from sim.evaluation.cluster import Cluster
from sim.evaluation.fields import DEPTHS, model_of
from sim.evaluation.point import Point
from sim.evaluation.systems import BASELINES, FULL, canonical
from sim.serving.arrivals import Arrivals
from sim.serving.measured import point_of
from sim.serving.queue import REQUESTS

__all__ = ["LADDER", "SIZES", "SYSTEMS", "AtLoad", "Setting", "Within", "candidates_of", "parts",
           "points_of"]

SYSTEMS = (*BASELINES, FULL)
"""Systems that are compared by default."""

SIZES = (1, 8, 32, 128, 512, 2048)
"""Mini-batches that a system chooses from, in samples over all nodes."""

LADDER = tuple(float(digit * 10 ** power) for power in range(3, 8) for digit in (1, 2, 5))
"""Requests per second at which each system is measured: 1,000 to 50 million."""

_LEAST_REQUESTS = 1000
"""Fewer requests have no p99.9."""

_LARGEST_SIZE = 65_536
"""Most samples of a mini-batch, which bounds the time to measure a size."""

_MOST_REQUESTS = 10_000_000
"""Most requests; all requests of a run are in memory."""

_MOST_SAMPLES = 20_000_000
"""Most samples of a run's requests."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Values that all systems share.

    Members
    -------
    dataset, nodes, software, gpu, link, network, gpus, nics, inside, rdma, fidelity, in_flight,
        seed, data, format: see :class:`sim.evaluation.point.Point`.
    arrivals, burst_rate, burst_share, burst_us: see :class:`sim.serving.arrivals.Arrivals`, which
        has the same seed.
    sizes: mini-batches that a system chooses from. requests: measured requests of a run.
    candidates: samples of a request, drawn with equal probability.
    gpu_memory_bytes: memory of each GPU, None for no limit.

    Raises ``ValueError`` that names field, value and bound.
    """

    dataset: str | Model = "kaggle"
    nodes: int = 4
    software: str = "eager"
    gpu: str = Cluster.gpu
    link: str | None = Cluster.link
    network: str = Cluster.network
    gpus: int = Cluster.gpus
    nics: int = Cluster.nics
    inside: str | None = Cluster.inside
    rdma: bool = Cluster.rdma
    fidelity: str = "model"
    in_flight: int = max(DEPTHS)
    seed: int = 1
    data: tuple[str, ...] = ()
    format: str | None = None
    arrivals: str = "poisson"
    burst_rate: float = Arrivals.burst_rate
    burst_share: float = Arrivals.burst_share
    burst_us: float = Arrivals.burst_us
    sizes: tuple[int, ...] = SIZES
    requests: int = REQUESTS
    candidates: tuple[int, ...] = (1,)
    gpu_memory_bytes: int | None = None

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1:
            raise ValueError(f"sizes must be at least 1, not "
                             f"{', '.join(map(str, self.sizes)) or 'empty'}")
        if max(self.sizes) > _LARGEST_SIZE:
            raise ValueError(f"sizes must be at most {_LARGEST_SIZE}, not {max(self.sizes)}")
        if len(set(self.sizes)) < len(self.sizes):
            raise ValueError(f"sizes must differ, not {', '.join(map(str, self.sizes))}")
        if not _LEAST_REQUESTS <= self.requests <= _MOST_REQUESTS:
            bound = (f"at least {_LEAST_REQUESTS}" if self.requests < _LEAST_REQUESTS
                     else f"at most {_MOST_REQUESTS}")
            raise ValueError(f"requests must be {bound}, not {self.requests!r}")
        if not 1 <= min(self.candidates, default=0) <= max(self.candidates) <= _LARGEST_SIZE:
            raise ValueError(f"candidates must be between 1 and {_LARGEST_SIZE}, not "
                             f"{', '.join(map(str, self.candidates)) or 'empty'}")
        if self.requests * max(self.candidates) > _MOST_SAMPLES:
            raise ValueError(f"candidates must be at most {_MOST_SAMPLES // self.requests} with "
                             f"{self.requests:,} requests, not {max(self.candidates)}")
        self.process()

    def process(self) -> Arrivals:
        """Return the process of arrivals."""
        return Arrivals(self.arrivals, self.seed, self.burst_rate, self.burst_share, self.burst_us)


@dataclass(frozen=True, kw_only=True)
class AtLoad(Setting):
    """A system at a load of ``qps`` requests per second."""

    system: str
    qps: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.qps < float("inf"):
            raise ValueError(f"qps must be above 0 and finite, not {self.qps!r}")


@dataclass(frozen=True, kw_only=True)
class Within(Setting):
    """Search of a system's highest load within a p99 of ``slo_us``, between a load ``served``
    within it and a load ``over`` it."""

    system: str
    slo_us: float
    served: float
    over: float


def candidates_of(dataset: str | Model, data: tuple[str, ...]) -> tuple[int, ...]:
    """Return the samples of a request of a model; 1 if it has no requests, or files of samples."""
    return (1,) if data else model_of(dataset).requests or (1,)


_LASTING = ("copied_rows", "pool")
"""Options that all mini-batches of a system have: rows and their copies stay on the GPUs, and NICs
keep the place at which a table is pooled."""


def points_of(setting: Setting, system: str, placement: str | None = None,
              fixed: Sequence[str] = (), searched: int | None = None) -> list[Point]:
    """Return a point for each mini-batch size of a system, in order of arrival and, if the system's
    name contains ``ga`` or is ``fs``, also formed by the graph algorithm.

    ``placement``, ``fixed``: chosen fields of a point of ``searched`` samples. The other points
    have its placement and its `_LASTING` options; the rest is open.

    Raises ``ValueError`` for an unknown system or setting.
    """
    name, graph = canonical(system)
    common = {field: getattr(setting, field) for field in (
        "dataset", "nodes", "software", "gpu", "link", "network", "gpus", "nics", "inside",
        "rdma", "fidelity", "in_flight", "seed", "data", "format")}
    lasting = [text for text in fixed if text.partition("=")[0] in _LASTING]
    return [point_of(size, formed, system=name, placement=placement,
                     fixed=tuple(fixed if size == searched else lasting), **common)
            for formed in (False, True) if graph or not formed
            for size in sorted(setting.sizes) if size > 1 or not formed]


def parts(setting: Setting) -> dict:
    """Return the members of a setting, for one of its parts."""
    values = asdict(setting)
    return {field.name: values[field.name] for field in fields(Setting)}
