"""Gain of each compiled twin: a whole run with the twin against a run with its Python reference.

A twin must make its runs at least 1.5 times as fast. Runs with and without the twin take turns; a
row is the median of the ratios of wall time within each turn, with the default two threads.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

from sim.bench.rows import Job, Progress, Row
from sim.cluster.exchange import Exchange
from sim.host_cpp.numerics import NUMPY
from sim.job.options import RunOptions
from sim.run.backend import Backend, choose
from sim.run.run import Run

__all__ = ["TWINS", "Twin", "twin_jobs", "twin_row"]

TURNS = 5


@dataclass(frozen=True)
class Twin:
    """A compiled twin.

    Members
    -------
    name: name in words.
    modules: modules of the C++ and of the reference.
    options: options of a run that needs the twin, in words and for
        :meth:`sim.job.options.RunOptions.of`.
    reference: replaces the twin by its Python reference.
    """

    name: str
    modules: str
    about: str
    options: dict
    reference: Callable[[Backend], Backend]


TWINS = (
    Twin("compiled hosts and GPUs", "sim.host_cpp.host for sim.node.node",
         "modelled NICs, 4 nodes", {"fidelity": "model", "samples": 8192},
         lambda backend: replace(backend, compiled_hosts=False)),
    Twin("compiled exchange", "sim.host_cpp.exchange for sim.cluster.exchange",
         "modelled NICs, 128 nodes",
         {"fidelity": "model", "samples": 8192, "nodes": 128, "settings": ("nodes=128",)},
         lambda backend: replace(backend, exchange=Exchange)),
    Twin("compiled check of results", "sim.host_cpp.check for host.dlrm.mlp and host.dlrm.dlrm",
         "RTL, 4 nodes", {"samples": 8192},
         lambda backend: replace(backend, numerics=NUMPY)),
)


def twin_jobs() -> list[Job]:
    """Return a job for each twin."""
    return [Job("twins", f"gain of {twin.name}",
                lambda progress, twin=twin: [twin_row(twin, progress)]) for twin in TWINS]


def twin_row(twin: Twin, progress: Progress = lambda line: None, **changes: int) -> Row:
    """Measure the gain of ``twin``; ``changes`` of the run's options make it shorter.

    ``RuntimeError`` if the two runs differ in a cycle, a counter or a prediction.
    """
    options = RunOptions.of(**twin.options | changes)
    compiled, reference = choose(options), twin.reference(choose(options))
    _timed(options, compiled)  # compile missing models, and load them
    ratios = []
    for number in range(TURNS):
        progress(f"with and without, {number + 1} of {TURNS}")
        (fast, one), (slow, other) = _timed(options, compiled), _timed(options, reference)
        if one != other:
            raise RuntimeError(f"{twin.name} and their reference gave different results")
        ratios.append(slow / fast)
    return Row(f"whole run with {twin.name}", median(ratios), "times as fast", 1.5,
               note=f"{twin.modules}; {twin.about}; the median of {len(ratios)} turns, from "
                    f"{min(ratios):.2f} to {max(ratios):.2f}")


def _timed(options: RunOptions, backend: Backend) -> tuple[float, tuple]:
    """Return the seconds and the result of a run."""
    job = Run(options, backend)
    began = time.perf_counter()
    result = job.execute()
    return time.perf_counter() - began, tuple(
        result[name] for name in ("cycles", "counters", "predictions_sha256", "results"))
