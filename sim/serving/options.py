"""Options of the command ``serve``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gen.base.option import AnyPath, AnyPaths, option, same
from sim.job.arguments import check_bounds
from sim.job.outputs import Outputs
from sim.job.simulation import Simulation
from sim.job.workload import Workload

__all__ = ["ServeOptions"]


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Options of the command ``serve``, and arguments of :func:`sim.api.serve`."""

    qps: Sequence[float] | None = option(
        None, "Requests per second, all nodes, comma-separated. auto: from 1,000 to the rate of "
        "the fastest system.", none="auto")
    slo: Sequence[str] = option(
        ("50us", "100us", "1ms", "5ms"), "Bounds on the 99th percentile of a request's latency, "
        "comma-separated.")
    system: Sequence[str] | None = option(
        None, "Systems, comma-separated.", shown="cpu-mpi,bl-paper,bl-tuned,fs")
    model: str | None = option(
        None, "DLRM: a preset or a TOML file.", shown="kaggle")
    data: AnyPaths | None = same(Workload, "data")
    format: str | None = same(Workload, "format")
    index: str = same(Workload, "index")
    cluster: AnyPath | None = option(
        None, "Nodes, links and GPU: a preset or a TOML file. Other options override it.")
    nodes: int | None = same(Workload, "nodes", default=None, of_cluster=False,
                             shown=f"the cluster's, else {Workload.nodes}")
    software: str | None = option(
        None, "Software profile of all systems: eager or tuned.", shown="the cluster's, else eager")
    gpu: str | None = option(
        None, "GPU profile.", shown=f"the cluster's, else {Workload.gpu}")
    fidelity: str = same(
        Simulation, "fidelity", default="model",
        help="Fidelity of the NICs: fast, or rtl, which takes hours.")
    sizes: Sequence[int] = option(
        (1, 8, 32, 128, 512, 2048), "Mini-batches that a system chooses from, in samples over all "
        "nodes, comma-separated.")
    in_flight: int = same(Workload, "in_flight", default=16, most=None)
    arrivals: str = option("poisson", "Arrivals of requests: poisson, or bursts.")
    burst_rate: float = option(4.0, "Arrivals in a burst, as a multiple of the mean rate.")
    burst_share: float = option(0.1, "Share of the time in bursts.")
    burst_length: str = option("1ms", "Mean length of a burst.")
    requests: int = option(
        20_000, "Least measured requests of a run. Mini-batches are at least a twentieth of "
        "them.")
    candidates: Sequence[int] | None = option(
        None, "Samples of a request, drawn with equal probability, comma-separated. All samples of "
        "a request arrive together.", shown="the requests of the model, else 1")
    seed: int = option(Workload.seed, "Seed of all random numbers.")
    jobs: int | None = option(None, "Parts of the work done in parallel.", shown="processors")
    points: AnyPath | None = option(
        None, "Folder that keeps finished parts; run the same command again to resume.")
    json: AnyPath | None = same(Outputs, "json")
    picture: AnyPath | None = same(Outputs, "picture")
    progress: Callable[[int, int, float], None] | None = option(
        None, "Callback: parts done, number of parts, fraction of the work done.")

    def __post_init__(self) -> None:
        check_bounds(self)
