"""What algorithms save on the same samples, and what they cost."""

from collections.abc import Mapping, Sequence

import numpy as np

from host.batching.algorithms import ALGORITHMS, Algorithm
from host.batching.refresh import Refresh
from host.batching.stream import Batcher
from host.samples import Samples

__all__ = ["compare", "saving", "winner"]


def compare(samples: Samples, size: int, window: int | None = None,
            algorithms: Mapping[str, Algorithm] | None = None,
            refresh: Refresh | None = None) -> list[dict]:
    """Form mini-batches of ``samples`` with each of the algorithms, windows and all.

    Parameters
    ----------
    size, window, refresh: of the mini-batches, see :class:`host.batching.stream.Batcher`.
    algorithms: by name, by default all there are. Savings are against ``file``.

    Returns
    -------
    A row for each: ``algorithm``; ``mini_batches``; ``unique_keys``, the mean of all of them, from
    windows that are full to those that are drained; ``saved``, the share of unique keys saved
    against the order of the file on the same windows; ``similarity``, the mean;
    ``first_similarity``, that of the first mini-batches of the windows, and
    ``last_similarity``, of the last; ``us_per_mini_batch``, CPU time of the algorithm on this
    machine.
    """
    plain = _row("file", ALGORITHMS["file"], samples, size, window, None)
    rows = []
    for name, algorithm in (ALGORITHMS if algorithms is None else algorithms).items():
        row = plain if name == "file" else _row(name, algorithm, samples, size, window, refresh)
        row["saved"] = _saved(row["unique_keys"], plain["unique_keys"])
        rows.append(row)
    return rows


def saving(algorithm: Algorithm, samples: Samples, size: int, window: int | None = None) -> float:
    """Return the share of unique keys per mini-batch that one algorithm saves, see `compare`."""
    return compare(samples, size, window, {"it": algorithm})[0]["saved"]


def winner(rows: Sequence[dict]) -> str:
    """Return the algorithm that saves most unique keys; the first of equal ones."""
    return max(rows, key=lambda row: row["saved"])["algorithm"]


def _row(name: str, algorithm: Algorithm, samples: Samples, size: int, window: int | None,
         refresh: Refresh | None) -> dict:
    batcher = Batcher(algorithm, size, window, refresh)
    formed = [(batch.fresh, batch.unique, batch.similarity) for batch in batcher.form([samples])]
    if not formed:
        raise ValueError("samples must be at least 1, not 0")
    fresh, unique, alike = map(np.array, zip(*formed))
    last = np.append(fresh[1:], True)
    return {"algorithm": name, "mini_batches": len(formed), "unique_keys": float(unique.mean()),
            "saved": 0.0, "similarity": float(alike.mean()),
            "first_similarity": float(alike[fresh].mean()),
            "last_similarity": float(alike[last].mean()),
            "us_per_mini_batch": 1e6 * batcher.seconds / batcher.formed}


def _saved(unique: float, plain: float) -> float:
    return 1 - unique / plain if plain else 0.0
