"""Measurements of a run, for its report."""

from dataclasses import dataclass

from sim.job.options import RunOptions
from sim.node.repeats import RepeatCounts
from sim.run.simulation import Simulation

__all__ = ["Measurements"]


@dataclass(frozen=True)
class Measurements:
    """Measurements of a run, at its end or during the run.

    Members
    -------
    options: options of the run.
    simulation: the cluster.
    counters: counters of each NIC; None during the run, because reading them takes NIC cycles.
    stuck: diagnosis of a stuck run, else None.
    complete: whether every sample is answered.
    interrupted: signal that ended the run, or None.
    wall, cpu: seconds.
    seconds: CPU seconds of ``checks``, ``inputs`` and ``batching``.
    samples, lookups: counts of the finished mini-batches.
    next_sample: first sample after the finished mini-batches.
    under_way: samples of unfinished mini-batches.
    unanswered: unanswered samples of a stuck run.
    repeats: bags and lookups of the finished mini-batches, and the repeated ones among them.
    cycles: cycles from the first query to the last result.
    latencies: latencies of mini-batches in us.
    foreign_keys: keys that nodes need from other nodes, each counted once per mini-batch and node.
    verdicts: number of samples by verdict.
    sha256: checksum of the predictions.
    batching: statistics of the mini-batches.
    notes: lines on the placement of the tables.
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
    repeats: RepeatCounts
    cycles: int
    latencies: list[float]
    foreign_keys: int
    verdicts: dict[str, int]
    sha256: str
    batching: dict
    notes: list[str]
