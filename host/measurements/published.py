"""Figures from published tables and logs, as data; the comments of each file describe the setup."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TypeVar

from host.toml.schema import read_toml

__all__ = ["Copied", "Drop", "DropModel", "Flattening", "Formed", "FormedRow", "Inference",
           "KernelRows", "Looked", "Multiplied", "Readme", "Run", "drop", "flattening",
           "flattening_v3_1", "formed", "inference", "kernel_rows"]

T = TypeVar("T")


@dataclass(frozen=True)
class Looked:
    """A lookup or an update in all tables.

    Members
    -------
    samples: samples.
    tables, rows: number of tables, and rows of each.
    hot: lookups per bag.
    dimension: values of a row.
    us: measured time.
    """

    samples: int
    tables: int
    rows: int
    hot: int
    dimension: int
    us: float


@dataclass(frozen=True)
class Multiplied:
    """``batch`` matrix products, ``rows`` by ``inner`` times ``inner`` by ``columns``; ``us``
    measured.
    """

    rows: int
    inner: int
    columns: int
    us: float
    batch: int = 1


@dataclass(frozen=True)
class Copied:
    """A copy of ``bytes`` to the GPU; ``us`` measured."""

    bytes: float
    us: float


@dataclass(frozen=True)
class KernelRows:
    """``kernel_rows.toml``: single kernels on a V100."""

    source: str
    lookup: tuple[Looked, ...]
    update: tuple[Looked, ...]
    product: tuple[Multiplied, ...]
    copy: tuple[Copied, ...]


@dataclass(frozen=True)
class Inference:
    """``inference.toml``: latency and throughput of one V100 by ``batch``."""

    source: str
    dimension: int
    dense: int
    bottom: tuple[int, ...]
    top: tuple[int, ...]
    tables: int
    batch: tuple[int, ...]
    float32_ms: tuple[float, ...]
    float16_ms: tuple[float, ...]
    float32_rate: tuple[float, ...]
    slope: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("float32_ms", "float16_ms", "float32_rate"):
            if len(getattr(self, name)) != len(self.batch):
                raise ValueError(f"{name} must have {len(self.batch)} values, as batch has")

    def ms(self, batch: int, float16: bool = False) -> float:
        """Return the median latency of a batch."""
        return (self.float16_ms if float16 else self.float32_ms)[self.batch.index(batch)]


@dataclass(frozen=True)
class Run:
    """One configuration of :class:`Flattening`. Raises ``ValueError`` for contradictions."""

    gpus: int
    mini_batch: int
    ms: float
    throughput_m: float
    hosts: int
    shards: tuple[tuple[int, ...], ...]
    replicated: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.shards) != (self.gpus if self.hosts == 1 else self.hosts):
            raise ValueError(f"shards must have an entry per GPU of a host, or per host, "
                             f"not {len(self.shards)}")

    @property
    def rate(self) -> float:
        """Samples per second, without evaluations."""
        return self.mini_batch / self.ms * 1e3


@dataclass(frozen=True)
class Flattening:
    """``flattening.toml``, ``flattening_v3_1.toml``: training on an increasing number of GPUs."""

    source: str
    dimension: int
    dense: int
    bottom: tuple[int, ...]
    top: tuple[int, ...]
    cross_layers: int
    cross_rank: int
    rows: tuple[int, ...]
    hot: tuple[int, ...]
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class DropModel:
    """The inferred model of ``network_drop.toml``.

    multi_hot: lookups per table in the alternative reading.
    """

    samples_of_gpu: int
    dimension: int
    dense: int
    bottom: tuple[int, ...]
    top: tuple[int, ...]
    cross_layers: int
    cross_rank: int
    rows: tuple[int, ...]
    multi_hot: tuple[int, ...]


@dataclass(frozen=True)
class Readme:
    """A rate of eight GPUs, in iterations per second."""

    samples_of_gpu: int
    interaction: str
    rate: float


@dataclass(frozen=True)
class Drop:
    """``network_drop.toml``: one host, and two hosts joined by a single NIC each."""

    source: str
    one_host: float
    two_hosts: float
    exchange_ms: tuple[float, ...]
    tcp_gb_s: tuple[float, ...]
    model: DropModel
    readme: tuple[Readme, ...]


@dataclass(frozen=True)
class FormedRow:
    """A mini-batch of ``mini_batch`` samples and ``keys`` lookups of ``model``; ``us`` measured."""

    model: str
    mini_batch: int
    keys: int
    us: float


@dataclass(frozen=True)
class Formed:
    """CPU times of the graph algorithm. Members: ``source``; ``rows``, one for each shape."""

    source: str
    rows: tuple[FormedRow, ...]


@cache
def kernel_rows() -> KernelRows:
    """Return ``kernel_rows.toml``."""
    return _read("kernel_rows", KernelRows)


@cache
def inference() -> Inference:
    """Return ``inference.toml``."""
    return _read("inference", Inference)


@cache
def flattening() -> Flattening:
    """Return ``flattening.toml``."""
    return _read("flattening", Flattening)


@cache
def flattening_v3_1() -> Flattening:
    """Return ``flattening_v3_1.toml``."""
    return _read("flattening_v3_1", Flattening)


@cache
def drop() -> Drop:
    """Return ``network_drop.toml``."""
    return _read("network_drop", Drop)


@cache
def formed() -> Formed:
    """Return ``batching.toml``."""
    return _read("batching", Formed)


def _read(name: str, kind: type[T]) -> T:
    return read_toml(str(files("host") / "measurements" / f"{name}.toml"), kind)
