"""Options of the commands that run no NIC."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass

from gen.base.option import REQUIRED, AnyPath, AnyPaths, Named, Settings, option, same
from host.data.key_counts import MOST_KEYS
from rtl.config import POLICY_CODES
from rtl.formats import TABLE_BITS
from sim.job.arguments import check_bounds
from sim.job.options import RunArguments
from sim.job.outputs import Outputs
from sim.job.workload import Workload

__all__ = ["BatchingOptions", "DescribeOptions", "HitrateOptions", "PlanOptions"]

_SEED = "Seed of the generated samples."
_WARMUP = "Mini-batches that fill the caches before anything is counted."
_SAMPLES_DONE = "Called with the samples done."
_OF_CLUSTER = {"default": None, "shown": "that of the cluster", "of_cluster": False}


@dataclass(frozen=True, kw_only=True)
class HitrateOptions:
    """Options of the command ``hitrate``, and arguments of :func:`sim.api.hitrate`."""

    sizes: Sequence[int] | None = option(
        None, "Rows of a node's cache, several with commas between; 0 is off. Default: a quarter "
        "to four times the rows of the NIC's cache.")
    data: AnyPaths | None = same(Workload, "data")
    format: str | None = same(Workload, "format")
    index: str = same(Workload, "index")
    model: Named | None = same(Workload, "model")
    policy: Sequence[str] = option(
        ("lru",), f"Replacement policies, with commas between: {', '.join(POLICY_CODES)}.")
    ways: int | None = option(
        None, "Ways of a set; 0 is fully associative. Default: those of the NIC.")
    config: str | None = same(
        Workload, "config", default=None, shown=Workload.config, of_cluster=False,
        help="NIC preset that sizes and ways are taken from.")
    cluster: AnyPath | None = same(Workload, "cluster")
    nodes: int | None = same(
        Workload, "nodes", default=None, shown=str(Workload.nodes), of_cluster=False)
    placement: str = same(Workload, "placement")
    mini_batch: int = same(Workload, "mini_batch")
    samples: int | None = same(Workload, "samples")
    warmup: int = same(Workload, "warmup", help=_WARMUP)
    seed: int = same(Workload, "seed", help=_SEED)
    json: AnyPath | None = same(Outputs, "json")
    picture: AnyPath | None = same(Outputs, "picture")
    progress: Callable[[int], None] | None = option(None, _SAMPLES_DONE)
    stop: Callable[[], str | None] | None = same(
        RunArguments, "stop", help="Returns the name of a signal when the pass is to end early, "
        "else None; the counts until then are returned.")


@dataclass(frozen=True, kw_only=True)
class BatchingOptions:
    """Options of the command ``batching``, and arguments of :func:`sim.api.batching`."""

    data: AnyPaths | None = same(Workload, "data")
    format: str | None = same(Workload, "format")
    index: str = same(Workload, "index")
    model: Named | None = same(
        Workload, "model", shown="without data, each of kaggle, terabyte, avazu")
    samples: int | None = same(
        Workload, "samples",
        help="Samples to use. Default: all samples of a file, or 8,192 generated samples.")
    mini_batch: int | None = option(
        None, "Samples of a mini-batch.", shown="128, terabyte also 2,048")
    window: int | None = same(Workload, "window")
    hyperedges: Sequence[int] = option(
        (), "Hyperedge thresholds to try the graph algorithm with, with commas between.", none="")
    seed: int = same(Workload, "seed", help=_SEED)
    json: AnyPath | None = same(Outputs, "json")
    progress: Callable[[str], None] | None = option(
        None, "Called with a line that names the next step.")


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """Options of the command ``plan``, and arguments of :func:`sim.api.plan`."""

    model: Named | None = same(Workload, "model")
    cluster: AnyPath = option(
        "paper", "Nodes, links, memories and NIC: a preset or a TOML file. Other options override "
        "it.")
    config: str | None = same(Workload, "config", **_OF_CLUSTER)
    set: Settings = same(RunArguments, "set")
    nodes: int | None = same(Workload, "nodes", **_OF_CLUSTER)
    placement: str = same(Workload, "placement")
    pool: AnyPath = same(Workload, "pool")
    own_bags: str = same(Workload, "own_bags")
    wire: str = same(Workload, "wire")
    columns: str | None = same(Workload, "columns")
    blocks: str | None = same(Workload, "blocks")
    optimizer: str = option(
        "none", "Optimizer of a training, whose state the memory must hold: none, sgd or "
        "rowwise-adagrad.")
    hit_rate: float | None = option(
        None, "Hit rate of the unique keys that enter a local cache. Default: that of caches of "
        "the NIC's size on the samples.")
    data: AnyPaths | None = same(Workload, "data")
    format: str | None = same(Workload, "format")
    index: str = same(Workload, "index")
    samples: int | None = same(Workload, "samples")
    mini_batch: int = same(Workload, "mini_batch")
    in_flight: int = same(Workload, "in_flight")
    warmup: int = same(Workload, "warmup", help=_WARMUP)
    network: Named | None = same(Workload, "network", **_OF_CLUSTER)
    gpu: Named | None = same(Workload, "gpu", **_OF_CLUSTER)
    pcie: Named | None = same(Workload, "pcie", **_OF_CLUSTER)
    seed: int = same(Workload, "seed", help=_SEED)
    json: AnyPath | None = same(Outputs, "json")
    picture: AnyPath | None = same(Outputs, "picture")
    progress: Callable[[int], None] | None = option(None, _SAMPLES_DONE)


@dataclass(frozen=True)
class DescribeOptions:
    """Options of ``datasets describe``, and arguments of :func:`sim.api.describe`."""

    files: AnyPaths = option(
        REQUIRED, "Files of samples or folders of such files, taken together in order.")
    _: KW_ONLY
    format: str | None = same(Workload, "format")
    samples: int | None = option(None, "Samples to read. Default: all of them.", least=1)
    most_keys: int = option(
        MOST_KEYS, "Most keys to hold in memory, about 0.5 GB by default; with more of them, their "
        "number and skew are estimated, with the error.", least=1 << TABLE_BITS)
    json: AnyPath | None = same(Outputs, "json")
    progress: Callable[[int], None] | None = option(None, "Called with the samples read.")

    def __post_init__(self) -> None:
        check_bounds(self)
