"""Tally of key reuse between the samples of a run's mini-batches."""

from host.batching import MiniBatch
from sim.job.workload import Workload

__all__ = ["SimilarityTally"]


class SimilarityTally:
    """Unique keys and similarity of each mini-batch; they may be added in any order.

    Parameters: the ``workload`` of the run.
    """

    def __init__(self, workload: Workload):
        self._workload = workload
        self._each: dict[int, tuple[int, float, float | None]] = {}

    def add(self, number: int, batch: MiniBatch) -> None:
        """Add the mini-batch of step ``number``."""
        self._each[number] = batch.unique, batch.similarity, batch.downgrade

    def result(self) -> dict:
        """Return statistics of the mini-batches added, in the order of their steps.

        ``algorithm``; ``window``, its size in samples, None if samples are taken in file order;
        ``unique_keys`` and ``similarity`` (1 - unique keys / accesses), means, None without
        mini-batches; ``each``, the same for each mini-batch, and ``downgrade``, its similarity
        relative to that of the first mini-batch since its window was loaded.
        """
        each = [self._each[number] for number in sorted(self._each)]
        unique, similarity, downgrade = map(list, zip(*each)) if each else ([], [], [])
        return {
            "algorithm": self._workload.batching,
            "window": self._workload.window_samples,
            "unique_keys": sum(unique) / len(each) if each else None,
            "similarity": sum(similarity) / len(each) if each else None,
            "each": {"unique_keys": unique, "similarity": similarity, "downgrade": downgrade},
        }
