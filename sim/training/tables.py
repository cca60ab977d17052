"""Embedding tables on a cluster of NICs: runs the steps of training cycle by cycle."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

import numpy as np

from host.batching import REPEATS
from host.dlrm.dlrm import weighted_of
from host.dlrm.embedding import added_repeats
from host.dlrm.row_store import RowStore
from host.dlrm.weighted import rows_once
from host.placement.shard import ShardPlan
from host.samples import Samples
from host.timing.all_reduce import RingAllReduce
from host.timing.clock import CYCLE_NS
from host.timing.dense_time import DenseTime
from sim.node.gradients import TrainingHost
from sim.node.repeats import RepeatCounts
from sim.node.step import Step, StepResult
from sim.training.comparison import Comparison

__all__ = ["Clock", "ClusterTables", "TrainingCluster", "TrainingNode"]


class TrainingNode(Protocol):
    """Interface of a node that trains; see :class:`sim.node.node.Node`."""

    number: int
    training: TrainingHost
    finished: list[Step]

    def submit(self, step: Step, time: float) -> None: ...


class TrainingCluster(Protocol):
    """Interface of a cluster that trains; see :class:`sim.cluster.cluster.Cluster`."""

    nodes: Sequence[TrainingNode]

    def run(self, work_left: Callable[[], bool]) -> None: ...


@dataclass
class Clock:
    """Timing of the steps of a training, in cycles.

    A step begins when all rows of the previous step are written, all nodes know this, and the new
    weights of the MLPs are present. Overtaking lookups may be answered earlier. A node's GPU
    computes its bottom MLP during the lookups, and the rest after its pooled vectors arrive.
    Gradients go to the NIC only after every node has its vectors and the front end knows this; the
    rule delays only nodes that are far ahead. Gradients of the MLPs are summed over the nodes while
    the NICs reduce the gradients of rows.

    dense: timing of the GPU.
    all_reduce: timing of the all-reduce.
    hand_out: cycles from the last answer of a node until the front end can act on it at a different
        node.
    ready: begin of the first step.

    lookup: member; sum over the steps, from the start of a step to its last pooled vector.
    compute: member; sum over the steps, from there to the last node's gradients of bags.
    update: member; sum over the steps, from there to the last written row.
    exposed: member; sum over the steps, additional time due to the all-reduce.
    last: member; end of the last step.
    """

    dense: DenseTime
    all_reduce: RingAllReduce
    hand_out: float
    ready: float
    lookup: float = 0.0
    compute: float = 0.0
    update: float = 0.0
    exposed: float = 0.0
    last: float = 0.0

    def gradients(self, step: Step) -> list[float]:
        """Return when each node sends its gradients to its NIC; the lookups of ``step`` are done.
        """
        known = max(step.finished + self.hand_out, self.ready)
        bags, self._weights = [], 0.0
        for node, (first, last) in enumerate(zip(step.shares, step.shares[1:])):
            if first == last:
                bags.append(known)
                continue
            bottom = self.dense.bottom(self.ready, last - first)
            there = self.dense.top(max(step.ends[node], bottom), last - first)
            self._weights = max(self._weights, self.dense.backward(there, last - first))
            bags.append(max(there, known))
        answered = max(step.finished, self.ready)
        self.lookup += answered - self.ready
        self.compute += max(bags) - answered
        self._bags = max(bags)
        return bags

    def end(self, rows: float) -> None:
        """End the step, whose last row is written at cycle ``rows``."""
        self.update += rows - self._bags
        ends = [max(rows + self.hand_out, self.dense.weights(self._weights + cycles))
                for cycles in (0.0, self.all_reduce.cycles)]
        self.exposed += ends[1] - ends[0]
        self.last = max(rows, self.dense.weights(self._weights + self.all_reduce.cycles))
        self.ready = ends[1]


class ClusterTables:
    """Embeddings of a :class:`host.dlrm.trainer.Trainer` on NICs.

    Parameters
    ----------
    cluster: cluster of training nodes.
    clock: timing of the steps.
    comparison: comparison with the reference; None for no comparison.
    ended: called with the number of finished steps, after each step.
    unique: True if the NICs send each distinct vector of a share once.
    plan: plan of the tables, if it may have owner-pooled tables.
    repeats: repeated bags of a share that hosts send once, one of `host.batching.repeats.REPEATS`.
    first: function from a mini-batch to the sample whose bag stands for each bag; GPUs add the
        gradients of repeated bags. None to add none.

    Members
    -------
    steps: number of begun steps. lookups: of the finished steps.
    step: the last begun step.
    latencies: lookup time of each step, in microseconds.
    verdicts: number of samples whose pooled vectors are equal to the reference's, different, or
        rejected.
    bags: bags and lookups of the finished steps, and the repeated ones that hosts send once.
    injected: extra packets that node ``n`` sends before its gradients of step ``s``, by ``(s, n)``.
    next_samples: samples of the following step, if their lookups follow the gradients immediately
        (overtaking); the next call of `pooled` must use them.
    """

    def __init__(self, cluster: TrainingCluster, clock: Clock,
                 comparison: Comparison | None = None,
                 ended: Callable[[int], None] = lambda steps: None, unique: bool = False,
                 plan: ShardPlan | None = None, repeats: str = REPEATS[0],
                 first: Callable[[Samples], np.ndarray] | None = None):
        self.cluster, self.clock, self.comparison = cluster, clock, comparison
        self._ended, self._unique, self._plan = ended, unique, plan
        self._repeats, self._first = repeats, first
        self.injected: Mapping[tuple[int, int], Sequence[np.ndarray]] = {}
        self._model = cluster.nodes[0].training.memory.store.model
        self.next_samples: Samples | None = None
        self.steps = self.lookups = self._samples = 0
        self.step: Step | None = None
        self._early_step: Step | None = None
        self.latencies: list[float] = []
        self.bags = RepeatCounts()
        self.verdicts = {"equal": 0, "different": 0, "refused": 0}

    @property
    def rows(self) -> RowStore:
        """A copy of the rows of all nodes."""
        together = RowStore(self._model, self.cluster.nodes[0].training.memory.store.seed)
        for node in self.cluster.nodes:
            together.write(*node.training.memory.store.written())
        return together

    def pooled(self, samples: Samples) -> np.ndarray:
        """Look up ``samples``; return pooled vectors, float32 ``[n, tables, d]``."""
        model, nodes = self._model, self.cluster.nodes
        early, self._early_step = self._early_step, None
        self.step = step = early or self._begin(samples)
        assert step.samples is samples
        for node in nodes:
            node.training.open(step.number)
            if early is None:
                node.submit(step, self.clock.ready)
        self.cluster.run(lambda: not step.done)
        for node in nodes:
            node.finished.clear()
        self.latencies.append((step.finished - step.started) * CYCLE_NS / 1000)
        if self.comparison is not None:
            verdict = StepResult.judge(step, model, 0, lambda samples, *_: (
                self.comparison.reference.pooled(samples)))
            for name, value in asdict(verdict).items():
                self.verdicts[name] += value
        return step.answers

    def _begin(self, samples: Samples) -> Step:
        """Return the next step."""
        step = Step.of(self.steps, self._samples, samples, len(self.cluster.nodes),
                       (self._model.tables, self._model.width), unique=self._unique,
                       plan=self._plan, repeats=self._repeats)
        self.steps += 1
        self._samples += len(samples)
        return step

    def update(self, samples: Samples, gradients: np.ndarray) -> None:
        """Send the gradients ``[n, tables, d]`` of the step's bags to the hosts, and finish the
        step."""
        step, nodes = self.step, self.cluster.nodes
        assert step is not None and step.samples is samples
        if self.next_samples is not None:
            self._early_step, self.next_samples = self._begin(self.next_samples), None
        sent, sums = (samples, gradients) if self._first is None else added_repeats(
            samples, gradients, self._first(samples))
        sent = rows_once(sent, weighted_of(self._model))
        for node, time in zip(nodes, self.clock.gradients(step)):
            share = slice(step.shares[node.number], step.shares[node.number + 1])
            node.training.gradients(
                sent.slice(share.start, share.stop), sums[share], time,
                self.injected.get((step.number, node.number), ()))
            if self._early_step is not None:
                node.submit(self._early_step, time)
        self.cluster.run(lambda: any(node.training.finished is None for node in nodes))
        self.clock.end(max(node.training.finished or 0.0 for node in nodes))
        if step.repeats is not None:
            self.bags += step.repeats.counts(samples)
        self.lookups += len(samples.rows)
        self._ended(step.number + 1)
        if self.comparison is not None:
            self.comparison.step(step.number, samples, gradients,
                                 [node.training.keys for node in nodes])
