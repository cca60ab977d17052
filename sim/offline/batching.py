"""Comparison of batching algorithms: unique keys saved, and CPU cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from host.batching import (
    ALGORITHMS,
    WINDOW_BATCHES,
    Algorithm,
    Graph,
    Refresh,
    Tried,
    compare_stream,
    winner,
)
from host.samples import Samples
from sim.job.inputs import SampleSource
from sim.job.workload import Workload

__all__ = ["CASES", "SCHEMA", "Case", "batching", "batching_tables"]

SCHEMA = "embernic/batching/1"

_TOLD = 1_000_000
"""Samples between two lines of progress."""

_SAMPLES = 8192
"""Least number of samples to generate; a whole window may be more."""


@dataclass(frozen=True)
class Case:
    """Sizes of a mini-batch and of a window, in samples."""

    mini_batch: int
    window: int


_SMALL = Case(128, 2048)

CASES = {"kaggle": (_SMALL,), "terabyte": (_SMALL, Case(2048, 32768)), "avazu": (_SMALL,)}
"""The cases to compare without data and model."""


def batching(*, data: str | tuple[str, ...] | None = None, format: str | None = None,
             model: str | None = None, samples: int | None = None, mini_batch: int | None = None,
             window: int | None = None, hyperedges: Sequence[int] = (), seed: int = 1,
             progress: Callable[[str], None] = lambda doing: None) -> dict:
    """Compare the algorithms on the same samples and windows.

    All algorithms read the samples in parallel and once; the windows bound the memory.

    Parameters
    ----------
    data, format, model, samples, seed: the input as in :class:`sim.job.workload.Workload`. Without
        ``data`` and ``model``, samples for Kaggle, Terabyte and Avazu are generated: ``samples``,
        by default 8,192 or a whole window.
    mini_batch, window: their samples; by default 128 (or both sizes of `CASES`) and 16
        mini-batches.
    hyperedges: additional thresholds n of the graph algorithm.
    progress: called with a line on the next step.

    Returns
    -------
    ``schema``, ``seed``, ``rows`` and ``winners``. A row has ``dataset``, ``samples``,
    ``mini_batch``, ``window``, ``hyperedges`` (None except for the graph algorithm), ``refill``
    (``drained`` or ``sliding``) and the fields of :func:`host.batching.compare`. The winner of a
    case is the row of the ``--batching`` algorithm with the most savings.

    Raises
    ------
    ValueError
        An option that is out of range, or an input that cannot be read
        (:class:`host.errors.InputError`).
    """
    algorithms = _algorithms(hyperedges)
    rows, winners = [], []
    ways = [(known, number, algorithm, "drained", None)
            for known, number, algorithm in algorithms.values()]
    ways += [(known, number, algorithm, "sliding", Refresh(sliding=True))
             for known, number, algorithm in _SLIDING.values()]
    tried = [Tried(known, algorithm, refresh) for known, _, algorithm, _, refresh in ways]
    for dataset, case, chunks in _cases(data, format, model, samples, mini_batch, window, seed,
                                        progress):
        sizes = f"{dataset}, {case.mini_batch:,} of {case.window:,}"
        formed = 0

        def tell(done: int, sizes: str = sizes) -> None:
            nonlocal formed
            if done // _TOLD > formed // _TOLD:
                progress(f"{sizes}: {done:,} samples")
            formed = done

        progress(f"{sizes}: {len(tried)} ways side by side")
        found = compare_stream(chunks, case.mini_batch, case.window, tried, tell)
        about = {"dataset": dataset, "samples": formed, "mini_batch": case.mini_batch,
                 "window": case.window}
        found = [about | {"algorithm": known, "hyperedges": number, "refill": refill} | row
                 for (known, number, _, refill, _), row in zip(ways, found)]
        best = winner(found[:len(ALGORITHMS)])
        winners.append(next(row for row in found if row["algorithm"] == best))
        rows += found
    return {"schema": SCHEMA, "seed": seed, "rows": rows, "winners": winners}


_Tried = Mapping[str, tuple[str, int | None, Algorithm]]
"""By full name: the name in `ALGORITHMS`, the hyperedges, and the algorithm."""


def _number(algorithm: Algorithm) -> int | None:
    return algorithm.hyperedges if isinstance(algorithm, Graph) else None


_SLIDING: _Tried = {"graph": ("graph", _number(ALGORITHMS["graph"]), ALGORITHMS["graph"])}


def _algorithms(hyperedges: Sequence[int]) -> _Tried:
    """Return the algorithms of ``--batching``, then the graph algorithm with other thresholds."""
    tried = {name: (name, _number(algorithm), algorithm) for name, algorithm in ALGORITHMS.items()}
    for name, algorithm in ALGORITHMS.items():
        if isinstance(algorithm, Graph):
            tried |= {f"{name}, n = {number}": (name, number, Graph(number, algorithm.refinements))
                      for number in hyperedges if number != algorithm.hyperedges}
    return tried


def _cases(data: str | tuple[str, ...] | None, format: str | None, model: str | None,
           samples: int | None, mini_batch: int | None, window: int | None, seed: int,
           progress: Callable[[str], None]) -> Iterator[tuple[str, Case, Iterator[Samples]]]:
    """Yield the name, sizes and samples of each case."""
    size = _SMALL.mini_batch if mini_batch is None else mini_batch
    case = Case(size, WINDOW_BATCHES * size if window is None else window)
    if data is not None or model is not None:
        wanted = [(model, case)]
    elif (mini_batch, window) == (None, None):
        wanted = [(name, case) for name, cases in CASES.items() for case in cases]
    else:
        wanted = [(name, case) for name in CASES]
    for name, case in wanted:
        count = max(_SAMPLES, case.window) if data is None and samples is None else samples
        workload = Workload(data=data, format=format, model=name, samples=count, seed=seed,
                             mini_batch=case.mini_batch, batching="graph", window=case.window)
        source = SampleSource.of(workload)
        shape = source.model.name
        progress(f"{shape}: {'generating' if source.kind is None else 'reading'} samples")
        yield shape, case, source.chunks()


def batching_tables(result: dict) -> Iterator[Table]:
    """Yield the tables of the command, one for each case."""
    for best in result["winners"]:
        sizes = [best[name] for name in ("dataset", "mini_batch", "window", "samples")]
        shown = Table(title="{}: mini-batches of {:,} from windows of {:,}, {:,} samples".format(
            *sizes), title_justify="left", caption=(
                f"Unique keys: mean of all mini-batches until windows are drained. Alike: "
                f"similarity of the first and the last of a window. us: CPU time of a mini-batch. "
                f"Most is saved by {best['algorithm']}."), caption_justify="left")
        for name in ("algorithm", "refill", "n", "unique keys", "saved", "alike first",
                     "alike last", "us"):
            left = name in ("algorithm", "refill")
            shown.add_column(name, justify="left" if left else "right", no_wrap=left)
        for row in result["rows"]:
            if [row[name] for name in ("dataset", "mini_batch", "window", "samples")] == sizes:
                shown.add_row(*_shown(row))
        yield shown


def _shown(row: dict) -> tuple[str, ...]:
    return (row["algorithm"], row["refill"],
            "-" if row["hyperedges"] is None else f"{row['hyperedges']:,}",
            f"{row['unique_keys']:,.1f}", f"{100 * row['saved']:.1f} %",
            *(f"{row[name]:.3f}" for name in ("first_similarity", "last_similarity")),
            f"{row['us_per_mini_batch']:,.0f}")
