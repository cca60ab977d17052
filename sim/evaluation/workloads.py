"""What each mini-batch of a trace asks of the nodes, and what software exchanges for it."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from host.placement.shard import ShardPlan
from host.systems import Workload, workload_of
from host.systems.bl_tuned import Tuning
from host.systems.tables import INDEX, vector_bytes
from sim.evaluation.reductions import Reduction
from sim.evaluation.trace import Trace

__all__ = ["MTU_PAYLOAD", "Workloads", "all_reduce_traffic", "gradient_traffic",
           "software_traffic", "totalled", "workloads"]

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


MTU_PAYLOAD = 1472
"""Bytes of a packet's payload: UDP in an MTU of 1,500."""

Traffic = dict[str, dict[str, float]]


def software_traffic(work: Sequence[Workload], training: bool,
                     tuning: Tuning | None = None) -> Traffic:
    """Return bytes and packets per mini-batch, all nodes, of what software exchanges."""
    dedupe = tuning is not None and tuning.dedupe
    kinds = {"lookups": [], "vectors": []} | ({"gradients": []} if training else {})
    for w in work:
        vectors = vector_bytes(w) * (w.requested if dedupe else w.bags)
        kinds["lookups"].append(INDEX * (w.requested if dedupe else w.lookups + w.bags))
        kinds["vectors"].append(vectors)
        if training:
            kinds["gradients"].append(vectors)
    return {kind: _count(np.array(messages)) for kind, messages in kinds.items()}


def gradient_traffic(work: Sequence[Workload],
                     reduced: Sequence[Reduction] | None = None) -> dict[str, float]:
    """Return bytes and packets of gradients: those of bags, or the partial sums of ``reduced``."""
    vectors = [w.bags for w in work] if reduced is None else [sums.partials for sums in reduced]
    return _count(np.array([vector_bytes(w) * of for w, of in zip(work, vectors)]))


def all_reduce_traffic(work: Sequence[Workload]) -> dict[str, float]:
    """Return bytes and packets of a ring over the MLPs' gradients."""
    w = work[0]
    size = 2 * (w.nodes - 1) * 4 * w.model.mlp_parameters
    return {"bytes": float(size), "packets": float(-(-size // MTU_PAYLOAD))}


def totalled(traffic: Traffic) -> Traffic:
    """Return ``traffic`` with the sum of all kinds as ``total``."""
    return traffic | {"total": {unit: sum(kind[unit] for kind in traffic.values())
                                for unit in ("bytes", "packets")}}


def _count(messages: np.ndarray) -> dict[str, float]:
    """Count messages, bytes ``[mini-batches, from, to]``, per mini-batch."""
    crossing = messages * (1 - np.eye(messages.shape[1], dtype=np.int64))
    return {"bytes": float(crossing.sum() / len(messages)),
            "packets": float((-(-crossing // MTU_PAYLOAD)).sum() / len(messages))}
