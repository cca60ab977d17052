"""Figures 6 and 8: how unevenly rows are used, and how alike the samples of a mini-batch are."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from host.batching import ALGORITHMS, WINDOW_BATCHES, Batcher, algorithm_of, compare
from host.data.datasets import open_samples
from host.data.generator import generate
from host.data.similarity import skew
from host.model import MODELS
from host.samples import Samples, concatenate
from sim.experiments.figures.picture import COLOURS, grid, save
from sim.experiments.figures.table import Row
from sim.experiments.points.setting import Setting, Source

__all__ = ["LIKENESS", "batching_rows", "draw_fig06", "draw_fig08", "fig06", "fig08", "samples_of"]

LIKENESS = {"fig06": "How unevenly rows are used", "fig08": "How alike a mini-batch's samples are"}
_SAMPLES = 8192
"""Of figure 6."""
_WINDOWS, _LARGE, _FEWER = 3, 1024, 2
"""Of figure 8, and for mini-batches of so many samples: greedy selection grows with the square."""
_SHOWN = ("graph", "greedy", "file")


def samples_of(setting: Setting, dataset: str, count: int) -> Samples:
    """Return the first ``count`` samples of a data set, fewer where its files have fewer."""
    return _samples(dataset, setting.source(dataset), setting.seed, count)


@cache
def _samples(dataset: str, source: Source, seed: int, count: int) -> Samples:
    model = MODELS[dataset]
    if source.data:
        chunks = list(open_samples(source.data, str(source.format), model, count))
    else:
        chunks = list(generate(model, count, seed))
    return concatenate(chunks)


def fig06(setting: Setting) -> list[Row]:
    """Return, for each data set, accesses of rows by rank, and what the most used ones take."""
    rows = []
    for dataset in setting.datasets:
        samples = samples_of(setting, dataset, _SAMPLES)
        shares = skew(samples)

        def row(metric: str, value: float, unit: str, dataset=dataset, samples=samples) -> Row:
            return Row(dataset, 1, len(samples), "none", "none", "samples", metric, value, unit)

        rows += [row("top_1_percent_share", shares.top1, "1"),
                 row("top_10_percent_share", shares.top10, "1"),
                 row("unique_rows", shares.unique, "rows"),
                 row("accesses", shares.accesses, "accesses")]
        used = np.sort(np.unique(samples.keys, return_counts=True)[1])[::-1]
        ranks = np.unique(np.geomspace(1, len(used), 60).astype(np.int64))
        rows += [row(f"accesses_of_rank_{rank}", int(used[rank - 1]), "accesses")
                 for rank in ranks.tolist()]
    return rows


def draw_fig06(rows: list[Row], setting: Setting, path: str | Path) -> None:
    """Draw accesses over rank, both logarithmic."""
    def draw(axes, dataset: str, _: str) -> None:
        own = [row for row in rows if row.dataset == dataset]
        curve = [(int(row.metric.rpartition("_")[2]), row.value) for row in own
                 if row.metric.startswith("accesses_of_rank_")]
        named = {row.metric: row.value for row in own}
        axes.plot(*zip(*curve), color=COLOURS[0], linewidth=1.6)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("row, by how often it is used", fontsize=9)
        axes.set_ylabel("accesses", fontsize=9)
        axes.text(0.97, 0.95, f"top 1 %: {named['top_1_percent_share']:.0%} of accesses\n"
                  f"top 10 %: {named['top_10_percent_share']:.0%}", ha="right", va="top",
                  fontsize=9, transform=axes.transAxes)

    save(grid(setting.datasets, [""], f"fig06: {LIKENESS['fig06']}",
              f"{rows[0].mini_batch:,} samples in one place, no NIC, no model; {_sources(setting)}",
              draw), path)


def _count(size: int) -> int:
    """Samples of figure 8 for mini-batches of ``size``."""
    return (_FEWER if size >= _LARGE else _WINDOWS) * WINDOW_BATCHES * size


def _formed(setting: Setting, dataset: str, name: str) -> Iterator[tuple[bool, float]]:
    size = setting.mini_batch(dataset)
    samples = samples_of(setting, dataset, _count(size))
    for batch in Batcher(algorithm_of(name), size).form([samples]):
        yield batch.fresh, batch.similarity


def fig08(setting: Setting) -> list[Row]:
    """Return the similarity of mini-batches one after the other, over several windows, and what
    each way to form them saves in unique keys."""
    rows = []
    for dataset in setting.datasets:
        size = setting.mini_batch(dataset)
        for name in _SHOWN:
            for number, (fresh, alike) in enumerate(_formed(setting, dataset, name)):
                what = "similarity_after_refresh" if fresh else "similarity"
                rows.append(Row(dataset, 1, size, "none", "none", name,
                                f"{what}_of_mini_batch_{number}", alike, "1"))
        rows += [Row(dataset, 1, size, "none", "none", found["algorithm"], metric, found[metric],
                     unit)
                 for found in batching_rows(setting, dataset)
                 for metric, unit in (("unique_keys", "keys"), ("saved", "1"),
                                      ("similarity", "1"))]
    return rows


def batching_rows(setting: Setting, dataset: str) -> list[dict]:
    """Return what `host.batching.compare` finds on the windows of figure 8."""
    return _compared(dataset, setting.source(dataset), setting.seed, setting.mini_batch(dataset))


@cache
def _compared(dataset: str, source: Source, seed: int, size: int) -> list[dict]:
    return compare(_samples(dataset, source, seed, _count(size)), size,
                   algorithms=ALGORITHMS)


def draw_fig08(rows: list[Row], setting: Setting, path: str | Path) -> None:
    """Draw similarity over mini-batches; refreshes are circles."""
    def draw(axes, dataset: str, _: str) -> None:
        for number, name in enumerate(_SHOWN):
            own = [row for row in rows if row.dataset == dataset and row.system == name
                   and "_of_mini_batch_" in row.metric]
            axes.plot(range(len(own)), [row.value for row in own], color=COLOURS[number],
                      label=name, linewidth=1.4, marker="." if name != "file" else None)
            if name == "graph":
                fresh = [(at, row.value) for at, row in enumerate(own)
                         if row.metric.startswith("similarity_after")]
                axes.plot(*zip(*fresh), "o", color=COLOURS[3], markersize=9, fillstyle="none",
                          label="window refreshed")
        axes.set_ylim(0, 1.05)
        axes.set_xlabel("mini-batch", fontsize=9)
        axes.set_ylabel("similarity: 1 - unique keys / accesses", fontsize=9)

    sizes = ", ".join(f"{setting.mini_batch(name):,} ({name})" for name in setting.datasets)
    save(grid(setting.datasets, [""], f"fig08: {LIKENESS['fig08']}",
              f"window of 16 mini-batches, mini-batch {sizes}, all nodes; {_sources(setting)}",
              draw, height=3.2), path)


def _sources(setting: Setting) -> str:
    of = {dataset: "a file" if setting.source(dataset).data else "generated"
          for dataset in setting.datasets}
    if len(set(of.values())) == 1:
        return f"samples {next(iter(of.values()))}"
    return "samples " + ", ".join(f"{source} ({dataset})" for dataset, source in of.items())
