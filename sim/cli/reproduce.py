"""The command ``python -m sim reproduce``."""

import sys
import time
from contextlib import AbstractContextManager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sim import api
from sim.cli import options as option
from sim.cli.options import DEFAULT
from sim.experiments.figures.registry import HEAVY, in_words
from sim.experiments.points.setting import SETTINGS

__all__ = ["reproduce"]

_LINE_SECONDS = 30.0
"""From one line of progress to the next where there is no terminal."""

def reproduce(
    figures: Annotated[list[str] | None, typer.Argument(
        help=f"Figures to make: {in_words()}. Default: all but {' and '.join(HEAVY)}, which take "
             "an hour or more each.")] = None,
    output: Annotated[str, typer.Option(
        help="Folder of the figures, claims.json and index.html. Finished points stay in it, and "
             "the same command goes on from them.")] = ...,  # type: ignore[assignment]
    model: Annotated[str | None, typer.Option(
        help="Data set that --data holds samples of: kaggle, terabyte or avazu.")] = None,
    data: option.Data = None,
    format: option.Format = None,
    fidelity: Annotated[str, typer.Option(
        help="Fidelity of the NICs: model, or rtl, which takes hours.")] = "model",
    gpu: Annotated[str, typer.Option(help="GPU profile.")] = DEFAULT["gpu"],
    backend: Annotated[str, typer.Option(
        help="What measures the points: loky (processes on this machine) or dask (the cluster "
             "whose scheduler DASK_SCHEDULER_ADDRESS names).")] = "loky",
    jobs: Annotated[int | None, typer.Option(
        help="Points measured at once.", show_default="processors")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = DEFAULT["seed"],
    seeds: Annotated[str, typer.Option(
        help="Seeds of the headlines and of fig22 and fig25, whose means then have 95 % intervals: "
             "their number, from --seed on, or several with commas between. All else is measured "
             "with the first.")] = "1",
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
    with _Points(console) as progress:
        found = api.reproduce(
            figures or (), output=output, model=model, data=data, format=format, fidelity=fidelity,
            gpu=gpu, backend=backend, jobs=jobs, seed=seed, rtl_points=rtl_points, demo=demo,
            seeds=several if len(several) > 1 else several[0], setting=setting,
            progress=progress)
    _tell(console, found, output)
    if found["failed"]:
        first = found["failed"][0]
        print(f"sim: {len(found['failed'])} of {found['points']} points failed, such as "
              f"{first['point']}: {first['error']}", file=sys.stderr)
        raise typer.Exit(1)


class _Points(AbstractContextManager):
    """Progress of a sweep: a bar on a terminal, else a line now and then."""

    def __init__(self, console: Console):
        self._console = console
        self._bar = Progress(
            TextColumn("points"), BarColumn(), TextColumn("{task.fields[points]}"),
            TimeRemainingColumn(),
            console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task("points", total=1.0, points="")
        self._began = 0.0
        self._first: float | None = None
        self._next = 0.0

    def __enter__(self) -> "_Points":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, done: int, total: int, share: float) -> None:
        now = time.monotonic()
        if self._first is None:  # what was asked for is right, and the first point begins
            self._bar.start()
            self._began, self._first = now, share
        self._bar.update(self._task, completed=share, points=f"{done:,}/{total:,}")
        if self._console.is_terminal or (now < self._next and done < total):
            return
        self._next = now + _LINE_SECONDS
        left = ""
        if self._first < share and done < total:
            seconds = (now - self._began) / (share - self._first) * (1 - share)
            left = f", about {seconds / 60:.0f} min left"
        self._console.print(f"{done:,} of {total:,} points{left}", highlight=False)


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
