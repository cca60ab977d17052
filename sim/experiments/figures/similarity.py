"""Similarity of mini-batches, by batching algorithm, over windows of a data set."""

from collections.abc import Iterator
from functools import cache

from host.batching import ALGORITHMS, WINDOW_BATCHES, Batcher, algorithm_of, compare
from host.data.contents import contents
from host.samples import Samples
from sim.evaluation.setting import Setting, samples_of

__all__ = ["compared", "similarities"]

_WINDOWS, _LARGE, _FEWER = 3, 1024, 2
"""Number of windows; fewer for large mini-batches, because greedy selection is quadratic."""


def similarities(setting: Setting, dataset: str, algorithm: str) -> Iterator[tuple[bool, float]]:
    """Yield, for each mini-batch, whether its window is new, and its similarity."""
    batcher = Batcher(algorithm_of(algorithm), setting.mini_batch(dataset))
    for batch in batcher.form([_samples(setting, dataset)]):
        yield batch.fresh, batch.similarity


def compared(setting: Setting, dataset: str) -> list[dict]:
    """Return the result of :func:`host.batching.compare`, an entry for each algorithm."""
    return _compared(setting, dataset, contents(setting.source(dataset).data))


@cache
def _compared(setting: Setting, dataset: str, _: tuple[str, ...]) -> list[dict]:
    return compare(_samples(setting, dataset), setting.mini_batch(dataset), algorithms=ALGORITHMS)


def _samples(setting: Setting, dataset: str) -> Samples:
    """Return the samples of the windows."""
    size = setting.mini_batch(dataset)
    return samples_of(setting, dataset,
                      (_FEWER if size >= _LARGE else _WINDOWS) * WINDOW_BATCHES * size)
