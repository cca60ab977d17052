"""Options of the command ``compare``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gen.base.option import AnyPath, AnyPaths, option, same
from host.model import Model
from host.placement.deal import PLACEMENTS, check_placement
from host.systems import WIRES
from host.timing.network import MTUS
from sim.job.arguments import check_bounds
from sim.job.outputs import Outputs
from sim.job.workload import Workload

__all__ = ["SYSTEMS", "CompareOptions"]

SYSTEMS = ("bl-tuned", "fs", "en")
"""Systems that are compared unless others are given."""


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """Options of the command ``compare``, and arguments of :func:`sim.api.compare`."""

    model: AnyPath | Model = option("kaggle", "DLRM: a preset or a TOML file.")
    cluster: AnyPath = option("h100x8", "Nodes, links and GPU: a preset or a TOML file.")
    nodes: int | None = option(None, "Nodes of the cluster.", least=1, shown="the cluster's")
    mini_batch: int | None = option(
        None, "Samples of a mini-batch, over all nodes.", least=1, shown="the model's")
    data: AnyPaths | None = same(Workload, "data")
    format: str | None = same(Workload, "format")
    index: str = same(Workload, "index")
    placement: str | None = option(
        None, f"Where rows are held, in place of the search. "
        f"{'; '.join(': '.join(item) for item in PLACEMENTS.items())}. Or the node of each table, "
        "such as 0,0,1.", shown="the fastest of each system")
    columns: str | None = same(Workload, "columns")
    blocks: str | None = same(Workload, "blocks")
    training: bool = option(False, "Compare training steps instead of inference.")
    system: Sequence[str] = option(
        SYSTEMS, "Systems, with commas between: cpu-mpi, bl-paper, bl-tuned, nic, lc, rc, sc, "
        "fs, en or a sum of parts such as lc+rc.")
    wire: str = option(
        "float32", "Shortest format of a value between nodes that a system may choose (bl-tuned, "
        "en).", among=tuple(WIRES))
    mtu: int = option(
        MTUS[0], "Bytes of the largest packets between nodes that a system may choose, "
        f"{' or '.join(map(str, MTUS))}.")
    fixed: Sequence[str] = option(
        (), "Options to fix in place of the search, as name=value with commas between, such as "
        "threads=1,one_collective=false; each for the systems that have it.")
    measured: int | None = option(
        None, "Mini-batches that are measured, after as many that warm the caches.", least=2,
        most=64, shown="2 to 16, at most about 5 million beats of vectors on the NICs")
    seed: int = option(Workload.seed, "Seed of all random numbers.")
    json: AnyPath | None = same(Outputs, "json")
    output: AnyPath | None = option(
        None, "Write a page, its pictures (PNG), CSV and JSON to this folder.")
    progress: Callable[[str], None] | None = option(
        None, "Called with the name of each system before it is measured.")

    def __post_init__(self) -> None:
        check_bounds(self)
        if self.placement is not None:
            check_placement(self.placement)
        if not self.system:
            raise ValueError("system must name at least one system")
