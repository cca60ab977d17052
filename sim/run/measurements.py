"""Measurements of a run, for its report."""

from dataclasses import dataclass

from sim.job.options import RunOptions
from sim.run.simulation import Simulation

__all__ = ["Measurements"]


@dataclass(frozen=True)
class Measurements:
    """Measurements of a run, at its end or while it goes on.

    Members
    -------
    options: of the run. simulation: the run's cluster.
    counters: of each NIC; None while the run goes on, because reading them takes NIC cycles.
    stuck: the diagnosis of a stuck run, else None. complete: whether every sample is answered.
    interrupted: the signal that ended the run, or None.
    wall, cpu: seconds. seconds: CPU seconds of ``checks``, ``inputs`` and ``batching``.
    samples, lookups: of the finished mini-batches. next_sample: the first sample after them.
    under_way: samples of unfinished mini-batches. unanswered: unanswered samples of a stuck run.
    cycles: from the first query to the last result. latencies: of mini-batches, in us.
    foreign_keys: keys that nodes need from others, each counted once per mini-batch and node.
    verdicts: number of samples by verdict. sha256: of the predictions. batching: for the report.
    """

    options: RunOptions
    simulation: Simulation
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
