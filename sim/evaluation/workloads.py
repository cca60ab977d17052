"""What each mini-batch of a trace asks of the nodes, with tables copied or not."""

from functools import lru_cache

from host.placement.shard import ShardPlan
from host.systems import Workload, workload_of
from sim.evaluation.trace import Trace

__all__ = ["Workloads", "workloads"]


class Workloads:
    """What each measured mini-batch of a trace asks of the nodes of a plan. Compared by identity.
    """

    def __init__(self, trace: Trace, plan: ShardPlan):
        self._trace, self._plans = trace, {0: plan}
        self._made: dict[tuple[int, int], Workload] = {}

    @property
    def plain(self) -> list[Workload]:
        """Each mini-batch with tables placed as for all systems."""
        return self.copied(0)

    @property
    def extremes(self) -> tuple[int, ...]:
        """Numbers of mini-batches between which all others lie: the graph algorithm forms similar
        ones first and what is left last; in file order any is as good as another."""
        count = len(self._trace.measured)
        return (0,) if self._trace.of.batching == "file" else tuple(dict.fromkeys((0, count - 1)))

    def copied(self, rows: int) -> list[Workload]:
        """Each mini-batch with tables of at most ``rows`` rows copied to every node and the others
        dealt again; 0 for none."""
        return [self.one_copied(rows, number) for number in range(len(self._trace.measured))]

    def one_copied(self, rows: int, number: int) -> Workload:
        """Mini-batch ``number`` of :meth:`copied`."""
        if rows not in self._plans:
            self._plans[rows] = self._plans[0].with_copies(rows)
        if (rows, number) not in self._made:
            self._made[rows, number] = workload_of(
                self._trace.measured[number].samples, self._trace.model, self._plans[rows])
        return self._made[rows, number]


@lru_cache(maxsize=8)
def workloads(trace: Trace, plan: ShardPlan) -> Workloads:
    """Return what each measured mini-batch asks of the nodes of ``plan``."""
    return Workloads(trace, plan)
