"""How alike the samples of the mini-batches of a run were."""

from host.batching import MiniBatch
from sim.job.workload import Workload

__all__ = ["Alike"]


class Alike:
    """Unique keys and similarity of mini-batches, which may be added in any order.

    Parameters: the ``workload`` of the run.
    """

    def __init__(self, workload: Workload):
        self._workload = workload
        self._each: dict[int, tuple[int, float, float | None]] = {}

    def add(self, number: int, batch: MiniBatch) -> None:
        """Take the mini-batch of a step."""
        self._each[number] = batch.unique, batch.similarity, batch.downgrade

    def result(self) -> dict:
        """Return what there is to say of the mini-batches added, in the order of their steps.

        ``algorithm``; ``window``, its samples, None in the order of the file; ``unique_keys`` and
        ``similarity`` (1 - unique keys / accesses), means, None without mini-batches; ``each``,
        these of each mini-batch, with ``downgrade``, its similarity relative to that of the first
        since its window was loaded.
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
