"""The command ``python -m sim reproduce``."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from gen.base.numbers import integer_option
from sim import api
from sim.cli import options as option
from sim.cli.options import DEFAULT
from sim.cli.progress import PointBar
from sim.evaluation.setting import SETTINGS
from sim.experiments.figures.registry import HEAVY, in_words

__all__ = ["reproduce"]


def reproduce(
    figures: Annotated[list[str] | None, typer.Argument(
        help=f"Figures to make: {in_words()}. Default: all but {', '.join(HEAVY)}, which take half "
             "an hour or more each.")] = None,
    output: Annotated[str, typer.Option(
        help="Folder of the figures, claims.json and index.html. Finished points stay in it, and "
             "the same command goes on from them.")] = ...,  # type: ignore[assignment]
    model: Annotated[str | None, typer.Option(
        help="Data set that --data holds samples of: kaggle, terabyte or avazu.")] = None,
    data: option.Data = None,
    format: option.Format = None,
    index: option.Index = "hash",
    fidelity: Annotated[str, typer.Option(
        help="Fidelity of the NICs: model, or rtl, which takes hours.")] = "model",
    gpu: Annotated[str, typer.Option(help="GPU profile.")] = DEFAULT["gpu"],
    backend: Annotated[str, typer.Option(
        help="What measures the points: loky (processes on this machine) or dask (the cluster "
             "whose scheduler DASK_SCHEDULER_ADDRESS names).")] = "loky",
    jobs: Annotated[int | None, integer_option(
        help="Points measured at once.", show_default="processors")] = None,
    seed: Annotated[int, integer_option(help="Seed of all random numbers.")] = DEFAULT["seed"],
    seeds: Annotated[str, typer.Option(
        help="Seeds of the headlines and of fig22, fig25 and paper_like, whose means then have "
             "95 % intervals: their number, from --seed on, or several with commas between. All "
             "else is measured with the first.")] = "1",
    rtl_points: Annotated[bool, typer.Option(
        help="Also run two points of each figure in rtl, on the Kaggle shape.")] = True,
    setting: Annotated[str, typer.Option(
        help=f"Setting of the evaluation: {', '.join(SETTINGS)}.")] = "reference",
    demo: Annotated[bool, typer.Option(
        "--demo", help="Take one data set and few points, which takes minutes.")] = False,
) -> None:
    """Make the paper's figures (PNG, CSV) and judge its claims (claims.json, index.html)."""
    console = Console()
    several = option.integers(seeds, "seeds") or [1]
    with PointBar(console) as progress:
        found = api.reproduce(
            figures or (), output=output, model=model, data=data, format=format, index=index,
            fidelity=fidelity, gpu=gpu, backend=backend, jobs=jobs, seed=seed,
            rtl_points=rtl_points, demo=demo, setting=setting, progress=progress,
            seeds=several if len(several) > 1 else several[0])
    _tell(console, found, output)
    if found["failed"]:
        first = found["failed"][0]
        print(f"sim: {len(found['failed'])} of {found['points']} points failed, such as "
              f"{first['point']}: {first['error']}", file=sys.stderr)
        raise typer.Exit(1)


def _tell(console: Console, found: dict, output: str) -> None:
    for row in found["headlines"]:
        if row["mean"] is not None:
            spread = "" if row["low"] is None else f" [{row['low']:.2f}, {row['high']:.2f}]"
            console.print(f"{row['system'].upper()} {row['workload']}, {row['software']} software, "
                          f"over {row['base']}: {row['mean']:.2f}x{spread}", highlight=False,
                          markup=False)
    for row in found["claims"]:
        verdict = {True: "agrees", False: "differs", None: "not measured"}[row["agrees"]]
        console.print(f"{row['claim']:>3} {verdict}: {row['ours']}", highlight=False, markup=False,
                      soft_wrap=True)
    console.print(f"{len(found['figures'])} figures, claims.json, index.html: {output}",
                  highlight=False, soft_wrap=True)
