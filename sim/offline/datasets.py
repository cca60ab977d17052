"""Description of a data set: samples, cardinalities, bags, skew and ranges, from one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from rich.table import Table

from host.data.datasets import FORMATS, Paths, input_files, known_format, open_samples
from host.data.key_counts import MOST_KEYS, KeyCounts
from host.data.similarity import BatchUniques
from host.samples import Samples, rechunk

__all__ = ["BATCHES", "SCHEMA", "describe", "describe_tables"]

SCHEMA = "embernic/datasets/1"

BATCHES = (128, 2048)
"""Mini-batch sizes for which unique keys are counted; each divides the last."""


class _Ranges:
    """Minimum, maximum and sum of each column of a stream."""

    def __init__(self) -> None:
        self.low = self.high = self.sum = np.zeros(0)
        self.count = 0

    def add(self, values: np.ndarray) -> None:
        low, high, total = values.min(axis=0), values.max(axis=0), values.sum(axis=0, dtype=float)
        if self.count:
            low, high = np.minimum(low, self.low), np.maximum(high, self.high)
            total += self.sum
        self.low, self.high, self.sum = low, high, total
        self.count += len(values)

    def rows(self) -> list[dict]:
        """Return ``min``, ``mean`` and ``max`` of each column, as plain numbers."""
        means = self.sum / max(1, self.count)
        return [{"min": low.item(), "mean": mean.item(), "max": high.item()}
                for low, mean, high in zip(self.low, means, self.high)]


class _Pass:
    """All counts of one pass through a data set."""

    def __init__(self, most_keys: int):
        self.samples = 0
        self.clicks = 0.0
        self.dense, self.bags = _Ranges(), _Ranges()
        self.empty = np.zeros(0, np.int64)
        self.keys = KeyCounts(most_keys)
        self.batches = [BatchUniques(batch) for batch in BATCHES]

    def add(self, samples: Samples) -> None:
        self.samples += len(samples)
        self.clicks += float(samples.labels.sum(dtype=float))
        self.dense.add(samples.dense)
        self.bags.add(samples.bag_lengths)
        self.empty = np.pad(self.empty, (0, samples.table_count - len(self.empty)))
        self.empty += (samples.bag_lengths == 0).sum(axis=0)
        self.keys.add(samples)


def describe(paths: Paths, *, format: str | None = None, samples: int | None = None,
             most_keys: int = MOST_KEYS,
             progress: Callable[[int], None] = lambda done: None) -> dict:
    """Read files once and describe their contents.

    Parameters
    ----------
    paths: files or folders, taken together in order; format: see :mod:`host.data.datasets`, guessed
        from the first file where it is None.
    samples: number of samples to read; None for all.
    most_keys: most keys held in memory; beyond it, the number of keys and the skew are estimates,
        and ``error`` is the number's standard error.
    progress: called with the samples read so far.

    Keys are the values of the data set itself, not rows of a model's tables: a category of Criteo
    is its 32-bit value, one of Avazu a hash of its text modulo 2^36 - 1.

    Returns
    -------
    A dictionary with plain values: ``schema``, ``files``, ``format``, ``samples``, ``click_rate``
    (mean of the labels; null for a trace, which has none), ``dense`` (``min``, ``mean`` and
    ``max`` of each feature as the model gets it, that is log(1 + x) where the format says so;
    empty for a trace), ``keys`` (of all tables: ``accesses``, ``unique``, ``error``, ``exact``,
    ``accesses_per_unique``, ``top1`` and ``top10``, the shares of the accesses that go to the most
    used 1 % and 10 % of the keys), ``tables`` (for each ``name``, ``accesses``, ``unique``,
    ``error``, ``exact``, ``bags`` with ``min``, ``mean``, ``max`` keys and how many are
    ``empty``), and ``mini_batches`` (for each of `BATCHES`, in file order: ``size``, how many
    were full, mean ``unique`` keys, ``accesses_per_unique``; a short last mini-batch is left
    out unless it is the only one).

    Raises
    ------
    InputError
        A file cannot be read as that format.
    ValueError
        An option is out of range.
    """
    files = input_files(paths)
    kind = known_format(files, format)
    found = _Pass(most_keys)

    def counted() -> Iterator[Samples]:
        for chunk in open_samples(files, kind, None, samples):
            found.add(chunk)
            progress(found.samples)
            yield chunk

    for part in rechunk(counted(), max(BATCHES)):
        for batch in found.batches:
            batch.add(part)
    return _summary(found, [str(file) for file in files], kind)


def _summary(found: _Pass, files: list[str], kind: str) -> dict:
    skew, names = found.keys.skew(), FORMATS[kind].tables
    tables = []
    for number, (table, bags) in enumerate(zip(found.keys.tables(), found.bags.rows())):
        tables.append({
            "name": names[number] if number < len(names) else str(number),
            "accesses": table.accesses, "unique": table.unique, "error": table.error,
            "exact": table.error == 0, "bags": bags | {"empty": int(found.empty[number])}})
    labelled = kind != "trace"
    return {
        "schema": SCHEMA, "files": files, "format": kind, "samples": found.samples,
        "click_rate": found.clicks / found.samples if labelled else None,
        "dense": found.dense.rows() if labelled else [],
        "keys": {"accesses": skew.accesses, "unique": skew.unique, "error": skew.error,
                 "exact": skew.error == 0, "top1": skew.top1, "top10": skew.top10,
                 "accesses_per_unique": _ratio(skew.accesses, skew.unique)},
        "tables": tables,
        "mini_batches": [{"size": batch.batch, "full": batch.batches,
                          "unique": _ratio(batch.unique, batch.batches),
                          "accesses_per_unique": _ratio(batch.lookups, batch.unique)}
                         for batch in found.batches]}


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def describe_tables(result: dict) -> list[Table]:
    """Return the tables of the command."""
    return [_overview(result), _tables(result)] + ([_dense(result)] if result["dense"] else [])


def _count(row: dict) -> str:
    """Return the number of unique keys as text; an estimate with its standard error."""
    return f"{row['unique']:,}" + ("" if row["exact"] else f" ± {row['error']:,.0f}")


def _overview(result: dict) -> Table:
    keys = result["keys"]
    shown = Table(title=f"{result['format']}: {result['files'][0]}"
                        + (f" and {len(result['files']) - 1} more" * (len(result["files"]) > 1)),
                  title_justify="left", show_header=False)
    shown.add_column()
    shown.add_column(justify="right")
    shown.add_row("samples", f"{result['samples']:,}")
    if result["click_rate"] is not None:
        shown.add_row("click rate", f"{result['click_rate']:.2%}")
    shown.add_row("tables", str(len(result["tables"])))
    shown.add_row("accesses", f"{keys['accesses']:,}")
    shown.add_row("unique keys", _count(keys))
    if keys["unique"]:
        shown.add_row("accesses of a unique key", f"{keys['accesses_per_unique']:.2f}")
    shown.add_row("share of the top 1 % of keys", f"{keys['top1']:.2%}")
    shown.add_row("share of the top 10 % of keys", f"{keys['top10']:.2%}")
    for size, batch in {min(batch["size"], result["samples"]): batch
                        for batch in result["mini_batches"]}.items():
        if batch["unique"]:
            shown.add_row(f"unique keys of {size:,} samples",
                          f"{batch['unique']:,.1f} ({batch['accesses_per_unique']:.2f} accesses "
                          "each)")
    return shown


def _tables(result: dict) -> Table:
    shown = Table()
    shown.add_column("table")
    for name in ("unique keys", "accesses", "keys of a bag, mean", "min", "max", "empty bags"):
        shown.add_column(name, justify="right")
    for row in result["tables"]:
        bags = row["bags"]
        shown.add_row(row["name"], _count(row), f"{row['accesses']:,}", f"{bags['mean']:.2f}",
                      f"{bags['min']:,}", f"{bags['max']:,}", f"{bags['empty']:,}")
    return shown


def _dense(result: dict) -> Table:
    shown = Table()
    for name in ("dense feature", "min", "mean", "max"):
        shown.add_column(name, justify="right")
    for number, row in enumerate(result["dense"], 1):
        shown.add_row(str(number), *(f"{row[name]:.4f}" for name in ("min", "mean", "max")))
    return shown
