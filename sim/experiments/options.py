"""Options of the command ``reproduce``."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass

from gen.base.option import REQUIRED, AnyPath, AnyPaths, Named, option, same
from sim.evaluation.fields import SETTING_NAMES
from sim.experiments.figures.registry import HEAVY, RESULTS, in_words
from sim.job.arguments import check_bounds
from sim.job.simulation import Simulation
from sim.job.workload import Workload

__all__ = ["ReproduceOptions"]


@dataclass(frozen=True)
class ReproduceOptions:
    """Options of the command ``reproduce``, and arguments of :func:`sim.api.reproduce`."""

    figures: Sequence[str] = option(
        (), f"Figures to make: {in_words()}. Default: all but {', '.join(HEAVY)}, which take half "
        f"an hour or more each. Or {RESULTS}, the page of results, alone.")
    _: KW_ONLY
    output: AnyPath = option(
        REQUIRED, "Folder of the figures and pages. It keeps finished points; "
        "run the same command again to resume.")
    model: str | None = option(
        None, "Model of the figures, and of the samples in --data: a preset or a TOML file; for "
        f"{RESULTS} also several, with commas between.",
        shown="kaggle, terabyte and avazu; all for results")
    data: AnyPaths | None = same(Workload, "data")
    format: str | None = same(Workload, "format")
    index: str = same(Workload, "index")
    fidelity: str = same(
        Simulation, "fidelity", default="model",
        help="Fidelity of the NICs: fast, or rtl, which takes hours.")
    gpu: Named = option(str(Workload.gpu), "GPU profile.")
    backend: str = option(
        "loky", "Executor of the points: loky (processes on this machine) or dask (the cluster of "
        "the scheduler DASK_SCHEDULER_ADDRESS).")
    jobs: int | None = option(None, "Points measured in parallel.", shown="processors")
    seed: int = option(Workload.seed, "Seed of all random numbers.")
    seeds: int | Sequence[int] = option(
        1, "Seeds of the headlines, fig22, fig25 and paper_like; several seeds give 95 % "
        "intervals. A number of seeds, starting at --seed, or a comma-separated list. All other "
        "points use the first seed.")
    rtl_points: bool = option(
        True, "Also run two points of each figure in rtl, on the Kaggle shape.")
    setting: str = option("reference", f"Setting of the evaluation: {', '.join(SETTING_NAMES)}.")
    demo: bool = option(False, "Evaluate one data set and few points, which takes minutes.")
    progress: Callable[[int, int, float], None] | None = option(
        None, "Callback: points done, number of points, fraction of the work done.")

    def __post_init__(self) -> None:
        check_bounds(self)
