"""What a run has measured, for its report."""

from dataclasses import dataclass

from host.model import Model
from rtl.config import NicConfig
from sim.job.options import RunOptions
from sim.job.settings import Runtime
from sim.run.setup import ClusterSetup

__all__ = ["Measured"]


@dataclass(frozen=True)
class Measured:
    """What a run has measured, at its end or while it goes on.

    Members
    -------
    options, config, runtime, model: of the run, and what they come to. setup: its cluster.
    counters: of each NIC; None while the run goes on, as reading them takes cycles of theirs.
    stuck: where a run is stuck, None for one that is not. complete: whether every sample is
    answered. interrupted: the signal that ended it, or None.
    wall, cpu: seconds. seconds: CPU seconds of ``checks``, ``inputs`` and ``batching``.
    samples, lookups: of the finished mini-batches. next_sample: the first behind them.
    under_way: samples of mini-batches that are not finished. unanswered: those of a stuck run.
    cycles: from the first query to the last result. latencies: of mini-batches, in us.
    foreign_keys: keys that nodes need from others, each once a mini-batch and node.
    verdicts: samples by what became of them. sha256: of the predictions. batching: for the report.
    """

    options: RunOptions
    config: NicConfig
    runtime: Runtime
    model: Model
    setup: ClusterSetup
    counters: list[dict[str, int]] | None
    stuck: dict | None
    complete: bool
    interrupted: str | None
    wall: float
    cpu: float
    seconds: dict[str, float]
    samples: int
    lookups: int
    next_sample: int
    under_way: int
    unanswered: int
    cycles: int
    latencies: list[float]
    foreign_keys: int
    verdicts: dict[str, int]
    sha256: str
    batching: dict
