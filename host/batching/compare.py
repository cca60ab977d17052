"""Comparison of batching algorithms on the same samples: savings and cost."""

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
    """Form mini-batches of ``samples`` with each algorithm, window by window.

    Parameters
    ----------
    size, window, refresh: see :class:`host.batching.stream.Batcher`.
    algorithms: by name, all by default. Savings are relative to ``file``.

    Returns
    -------
    One row per algorithm: ``algorithm``; ``mini_batches``; ``unique_keys``, the mean over all
    mini-batches, of full and of drained windows; ``saved``, the share of unique keys saved relative
    to file order on the same windows; ``similarity``, the mean; ``first_similarity``, that of the
    windows' first mini-batches, and ``last_similarity``, of their last; ``us_per_mini_batch``, CPU
    time of the algorithm on this machine.
    """
    plain = _row("file", ALGORITHMS["file"], samples, size, window, None)
    rows = []
    for name, algorithm in (ALGORITHMS if algorithms is None else algorithms).items():
        row = plain if name == "file" else _row(name, algorithm, samples, size, window, refresh)
        row["saved"] = _saved(row["unique_keys"], plain["unique_keys"])
        rows.append(row)
    return rows


def saving(algorithm: Algorithm, samples: Samples, size: int, window: int | None = None) -> float:
    """Return the share of unique keys per mini-batch that ``algorithm`` saves, see `compare`."""
    return compare(samples, size, window, {"it": algorithm})[0]["saved"]


def winner(rows: Sequence[dict]) -> str:
    """Return the algorithm that saves most unique keys; in a tie, the first."""
    return max(rows, key=lambda row: row["saved"])["algorithm"]


def _row(name: str, algorithm: Algorithm, samples: Samples, size: int, window: int | None,
         refresh: Refresh | None) -> dict:
    batcher = Batcher(algorithm, size, window, refresh)
    formed = [(batch.fresh, batch.unique, batch.similarity) for batch in batcher.form([samples])]
    if not formed:
        raise ValueError("samples must be at least 1, not 0")
    fresh, unique, similarities = map(np.array, zip(*formed))
    last = np.append(fresh[1:], True)
    return {"algorithm": name, "mini_batches": len(formed), "unique_keys": float(unique.mean()),
            "saved": 0.0, "similarity": float(similarities.mean()),
            "first_similarity": float(similarities[fresh].mean()),
            "last_similarity": float(similarities[last].mean()),
            "us_per_mini_batch": 1e6 * batcher.seconds / batcher.formed}


def _saved(unique: float, plain: float) -> float:
    return 1 - unique / plain if plain else 0.0
