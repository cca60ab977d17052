"""A run of simulated NICs over given mini-batches, with what happened when."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from host.batching import MiniBatch
from host.dlrm import Dlrm
from host.packets import parse_headers
from host.timing import CYCLE_NS
from rtl.formats import BEAT_BYTES, Opcode
from sim.options import RunOptions
from sim.results import Step
from sim.run import Run

__all__ = ["NicRun", "Record", "run_nics"]

_KINDS = {Opcode.LOOKUPS: "lookups", Opcode.VECTORS: "vectors"}


@dataclass
class Record:
    """What happened to one mini-batch, in cycles of the hosts and NICs.

    Members
    -------
    started, finished: first query leaves a host, last answer is in host memory.
    asked, served: when the last packet of lookups, and of vectors, left a NIC; None for none.
    """

    started: float = 0.0
    finished: float = 0.0
    asked: float | None = None
    served: float | None = None

    @property
    def us(self) -> float:
        """Microseconds from start to end."""
        return (self.finished - self.started) * CYCLE_NS / 1000

    def phases(self, one_way: float) -> dict[str, float]:
        """Return the microseconds of each phase, in their order; they add up to :attr:`us`.

        ``one_way``: cycles of the network. Lookups travel up to when the last is at its owner; GPUs
        and caches serve up to when the last vectors leave; these travel; the rest is the way of
        answers to the host's memory. Without packets between NICs all but that is lookup.
        """
        asked = self.started if self.asked is None else self.asked + one_way
        served = self.finished if self.served is None else self.served
        arrived = served if self.served is None else served + one_way
        marks = np.maximum.accumulate(np.minimum(
            [self.started, asked, served, arrived, self.finished], self.finished))
        names = ("input_all_to_all", "embedding_lookup", "embedding_all_to_all", "overhead")
        return dict(zip(names, (np.diff(marks) * CYCLE_NS / 1000).tolist()))


@dataclass(frozen=True)
class NicRun:
    """What a run came to.

    Members
    -------
    records: of each mini-batch, in their order. one_way: cycles of the network.
    result: of :func:`sim.run.run`.
    launches: gathers on each node's GPU, of rows and of dense vectors, ``[nodes]``.
    traffic: bytes and packets by kind, of the whole run.
    """

    records: list[Record]
    one_way: float
    result: dict
    launches: list[int]
    traffic: dict[str, dict[str, int]]

    def interval_us(self, first: int) -> float:
        """Return the microseconds from one mini-batch's end to the next, from ``first`` on."""
        ends = sorted(record.finished for record in self.records)[first:]
        return (ends[-1] - ends[0]) / (len(ends) - 1) * CYCLE_NS / 1000


class _NoValues(Dlrm):
    """A DLRM for modelled NICs, which look at no value: its MLPs are not computed."""

    def bottom(self, dense: np.ndarray) -> np.ndarray:
        """Return dense vectors of the right shape."""
        return np.zeros((len(dense), self.model.dimension), np.float32)


class _Watched(Run):
    """A run over given mini-batches whose starts and ends are kept."""

    def __init__(self, options: RunOptions, batches: Sequence[MiniBatch]):
        self._given = batches
        self.records: dict[int, Record] = defaultdict(Record)
        self.traffic: dict[str, dict[str, int]] = {
            kind: {"bytes": 0, "packets": 0} for kind in (*_KINDS.values(), "total")}
        super().__init__(options)

    def _steps(self, batches: Iterable[MiniBatch]) -> Iterator[Step]:
        if self.options.fidelity == "model":
            self._dlrm = _NoValues(self.model, self.options.seed, self.options.mlp)
        return super()._steps(iter(self._given))

    def _step_finished(self, step: Step, now: float) -> None:
        record = self.records[step.number]
        record.started, record.finished = step.started, step.finished
        super()._step_finished(step, now)

    def observe(self, frames: list[tuple[int, int, np.ndarray]]) -> None:
        """Take the frames that left NICs in a quantum."""
        heads = parse_headers(np.array([frame[0] for _, _, frame in frames])) if frames else ()
        for (cycle, _, frame), head in zip(frames, heads):
            kind = _KINDS.get(Opcode(head.opcode))
            for name in ("total", kind) if kind else ("total",):
                self.traffic[name]["bytes"] += len(frame) * BEAT_BYTES
                self.traffic[name]["packets"] += 1
            record = self.records[head.step]
            if kind == "lookups":
                record.asked = max(record.asked or 0.0, cycle)
            elif kind == "vectors":
                record.served = max(record.served or 0.0, cycle)


def run_nics(options: RunOptions, batches: Sequence[MiniBatch]) -> NicRun:
    """Run NICs, RTL or modelled as the options say, over mini-batches; the options' own are unused.

    ``RuntimeError`` for a run that did not end well.
    """
    run = _Watched(options, batches)
    result = run.execute(observer=run.observe)
    if not result["complete"] or result["bit_identical"] is False:
        raise RuntimeError(f"the run of the NICs failed: {result['stuck'] or result['results']}")
    records = [run.records[number] for number in range(len(batches))]
    launches = [node.gpu.launches + (node.dense.launches if node.dense else 0)
                for node in run.cluster.nodes]
    return NicRun(records, float(run.setup.network.lookahead), result, launches, run.traffic)
