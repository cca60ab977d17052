"""A system as the batcher sees it: the steps of mini-batches of any size."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sim.serving.batcher import Formed
from sim.serving.measured import COSTS, MiniBatches, finished_us

__all__ = ["System", "Work"]


@dataclass(frozen=True, eq=False)
class Work:
    """Work of formed mini-batches on a system.

    Members
    -------
    finished: end of each, microseconds, ``[mini-batches]``.
    costs: total cost, see :data:`sim.serving.measured.COSTS`.
    """

    finished: np.ndarray
    costs: dict[str, float]


class System:
    """A system and its measured mini-batches.

    A mini-batch that a timeout ended early takes the steps of the smallest measured size that is
    large enough: GPU kernels and graphs have fixed shapes, and the rest is padding. A full window
    takes the steps of a window of the graph algorithm, after threads have formed it.

    Parameters
    ----------
    measured: mini-batches of several sizes. in_flight: mini-batches in flight.

    Members: ``sizes``, ascending. ``graph``: sizes that the graph algorithm also formed.

    Raises ``ValueError`` without mini-batches in order of arrival.
    """

    def __init__(self, measured: Iterable[MiniBatches], in_flight: int):
        found = {(each.graph, each.size): each for each in measured}
        self.sizes = sorted(size for graph, size in found if not graph)
        if not self.sizes:
            raise ValueError("measured must contain mini-batches in order of arrival")
        self.graph = sorted(size for graph, size in found if graph)
        self._found, self._in_flight = found, in_flight

    def least_us(self, mini_batch: int) -> float:
        """Return the least time of a mini-batch of at most that many requests, alone."""
        return min(each.least_us for (_, size), each in self._found.items() if size <= mini_batch)

    def capacity(self) -> float:
        """Return the most samples per microsecond in full mini-batches."""
        return max(each.size / each.interval_us for each in self._found.values())

    def needed_us(self, formed: Formed) -> float:
        """Return the total time of mini-batches in sequence."""
        return sum(float(self._found[kind].interval_us) * count
                   for kind, count in zip(*self._kinds(formed)[1:]))

    def run(self, formed: Formed, seed: int) -> Work:
        """Run mini-batches, each with the steps of a measured mini-batch, drawn at random.

        Mini-batches of a window take the steps of a whole measured window, in its order.
        """
        which, kinds, counts = self._kinds(formed)
        draw = np.random.default_rng([seed, 3])
        steps: list = [None] * len(which)
        ready = formed.ready.copy()
        costs = dict.fromkeys(COSTS, 0.0)
        for number, (kind, count) in enumerate(zip(kinds, counts)):
            each = self._found[kind]
            where = np.flatnonzero(which == number)
            place = formed.place[where]
            window = int(place.max(initial=0)) + 1
            if each.forming.us:
                ready[where] = each.forming.formed(ready[where].tolist(), (place == 0).tolist())
            if each.graph and window > 1:
                chosen = np.repeat(draw.integers(len(each.steps) // window,
                                                 size=int((place == 0).sum())), window)
                chosen = chosen * window + place
            else:
                chosen = draw.integers(len(each.steps), size=count)
            for at, step in zip(where.tolist(), chosen.tolist()):
                steps[at] = each.steps[step]
            for name in COSTS:
                costs[name] += each.per_sample[name] * each.size * count
        ready = np.maximum.accumulate(ready).tolist()
        return Work(finished_us(steps, ready, self._in_flight), costs)

    def _kinds(self, formed: Formed) -> tuple[np.ndarray, list[tuple[bool, int]], list[int]]:
        """Return the kind number of each mini-batch, the kinds, and their counts."""
        size = np.array(self.sizes)[np.searchsorted(self.sizes, formed.size)]
        kinds, which, counts = np.unique(np.stack([formed.place >= 0, size]), axis=1,
                                         return_inverse=True, return_counts=True)
        return (which.reshape(-1), [(bool(graph), int(size)) for graph, size in kinds.T],
                counts.tolist())
