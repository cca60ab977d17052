"""The command ``python -m sim reproduce``."""

import sys
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from host.data.datasets import (
    DATA_HELP,
    FORMAT_HELP,
    check_files,
    input_files,
    known_format,
    one_or_several,
)
from sim.experiments.figures.registry import chosen, demo_names, in_words
from sim.experiments.points.point import DATASETS, MINI_BATCH
from sim.experiments.points.samples import samples_of
from sim.experiments.points.setting import DEMO, Setting, Source
from sim.experiments.sweep.backends import check_backend
from sim.files.outputs import check_apart

__all__ = ["reproduce", "setting_of"]

_LINE_SECONDS = 30.0
"""Between two lines of progress in a log."""

_DATASET_OF = {"criteo": "kaggle", "avazu": "avazu", "dlrm-npz": "kaggle"}
"""The data set whose samples a file gives, where no model is named."""


def reproduce(
    figures: Annotated[list[str] | None, typer.Argument(
        help=f"{in_words()}; all by default.")] = None,
    output: Annotated[str, typer.Option(
        help="Folder of figures, claims.json and index.html; finished points stay in it, and the "
             "same command goes on there.")] = ...,  # type: ignore[assignment]
    model: Annotated[str | None, typer.Option(
        help="Data set whose samples --data gives: kaggle, terabyte or avazu.")] = None,
    data: Annotated[list[str] | None, typer.Option(help=DATA_HELP)] = None,
    format: Annotated[str | None, typer.Option(help=FORMAT_HELP)] = None,
    fidelity: Annotated[str, typer.Option(help="Of the NICs: model, or rtl in hours.")] = "model",
    gpu: Annotated[str, typer.Option(help="GPU profile.")] = Setting.gpu,
    backend: Annotated[str, typer.Option(
        help="Where points are measured: loky (processes here), dask or ray.")] = "loky",
    jobs: Annotated[int | None, typer.Option(
        help="Points measured at once.", show_default="processors")] = None,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = Setting.seed,
    rtl_points: Annotated[bool, typer.Option(
        help="Run two points of each figure in rtl besides, on the Kaggle shape.")] = True,
    demo: Annotated[bool, typer.Option(
        "--demo", help="One data set and few points: minutes.")] = False,
) -> None:
    """Make the paper's figures and judge its claims: figNN.png, figNN.csv, claims.json, a page."""
    # Matplotlib is slow to load.
    from sim.experiments import reproduce as evaluation

    names = chosen(figures or (demo_names() if demo else ()))
    check_backend(backend, jobs)
    written = [f"{name}.{kind}" for name in names for kind in ("png", "csv")]
    check_apart({f"{name} of output": str(Path(output, name))
                 for name in (*written, "claims.json", "index.html")},
                {"data": data, "gpu": gpu})
    setting = replace(setting_of(model, one_or_several(data), format, fidelity, gpu, seed, demo),
                      markers=rtl_points and not demo)
    # Raises now what is wrong with the setting, not in every point.
    evaluation.points_of(names, setting)
    _check_folder(output)
    said = "".join(f" --{name} {value}" for name, value in (
        ("model", model), *(("data", path) for path in data or ()), ("format", format)) if value)
    if fidelity != "model":
        said += f" --fidelity {fidelity}"
    if gpu != Setting.gpu:
        said += f" --gpu {gpu}"
    if seed != Setting.seed:
        said += f" --seed {seed}"
    if not rtl_points:
        said += " --no-rtl-points"
    console = Console()
    with _Points(console) as progress:
        found = evaluation.reproduce(names, setting, output, backend, jobs, progress,
                                     command=said + (" --demo" if demo else ""))
    _tell(console, found, output)
    if found["failed"]:
        first = found["failed"][0]
        print(f"sim: {len(found['failed'])} of {found['points']} points failed, such as "
              f"{first['point']}: {first['error']}", file=sys.stderr)
        raise typer.Exit(1)


def setting_of(model: str | None = None, data: str | tuple[str, ...] | None = None,
               format: str | None = None, fidelity: str = "model", gpu: str = Setting.gpu,
               seed: int = Setting.seed, demo: bool = False) -> Setting:
    """Return the setting that these options ask for.

    ``data`` takes the place of the generator for the data set ``model``, by default that of the
    format. The files are read as far as the evaluation will; a shorter one lowers the number of
    mini-batches' samples.

    Raises ``ValueError`` and :class:`host.errors.InputError`.
    """
    setting = replace(DEMO if demo else Setting(), fidelity=fidelity, gpu=gpu, seed=seed)
    if model is not None and model not in DATASETS:
        raise ValueError(f"model must be one of {', '.join(DATASETS)}, not {model!r}")
    if data is None:
        if format is not None:
            raise ValueError(f"format must go with data, not {format!r} alone")
        return setting if model is None else replace(setting, datasets=(model,))
    check_files(data, "for the points, each of which reads it")
    kind = known_format(data, format)
    dataset = model or _DATASET_OF.get(kind)
    if dataset is None:
        raise ValueError(f"model must be given with the format {kind}: one of "
                         f"{', '.join(DATASETS)}")
    source = Source(tuple(str(path) for path in input_files(data)), kind)
    datasets = (dataset,) if demo else setting.datasets
    setting = replace(setting, datasets=datasets, sources=((dataset, source),))
    return _fitting(setting, dataset)


def _fitting(setting: Setting, dataset: str) -> Setting:
    """Return the setting with mini-batches so small that the samples of a file are enough."""
    batches = setting.warmup + setting.measured
    wanted = batches * setting.mini_batch(dataset)
    found = len(samples_of(setting, dataset, wanted))
    size = min(MINI_BATCH[dataset], found // batches)
    if size < setting.nodes:
        raise ValueError(f"data must have at least {batches * setting.nodes} samples of "
                         f"{dataset}, not {found}")
    return setting if found >= wanted else replace(
        setting, mini_batches=((dataset, size),))


def _check_folder(path: str) -> None:
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"output must be a folder, not the file {path!r}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"output cannot be made: {path}: {error.strerror}") from None


class _Points(AbstractContextManager):
    """Progress of a sweep: a bar on a terminal, else a line now and then."""

    def __init__(self, console: Console):
        self._console = console
        self._bar = Progress(
            TextColumn("points"), BarColumn(), TextColumn("{task.fields[points]}"),
            TimeRemainingColumn(),
            console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task("points", total=1.0, points="")
        self._began = time.monotonic()
        self._first: float | None = None
        self._next = 0.0

    def __enter__(self) -> "_Points":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, done: int, total: int, share: float) -> None:
        self._bar.update(self._task, completed=share, points=f"{done:,}/{total:,}")
        self._first = share if self._first is None else self._first
        now = time.monotonic()
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
            console.print(f"FS {row['workload']}, {row['software']} software, over {row['base']}: "
                          f"{row['mean']:.2f}x", highlight=False)
    for row in found["claims"]:
        verdict = {True: "agrees", False: "differs", None: "not measured"}[row["agrees"]]
        console.print(f"{row['claim']:>3} {verdict}: {row['ours']}", highlight=False, markup=False,
                      soft_wrap=True)
    console.print(f"{len(found['figures'])} figures, claims.json, index.html: {output}",
                  highlight=False, soft_wrap=True)
