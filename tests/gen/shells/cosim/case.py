"""Shared data of both sides of a cosimulation: the samples, and their results in ``sim run``."""

import random
from pathlib import Path

import numpy as np

from host.data.datasets import default_model, open_samples
from host.model import Model
from host.placement.shard import ShardPlan
from host.samples import Samples

__all__ = ["NODES", "SAMPLES", "SEED", "SETTINGS", "model_of", "plan_of", "samples_of", "simulate",
           "write_samples"]

SEED, SAMPLES, NODES = 11, 10, 2
_ROWS = (50, 40)
_TRACE = "samples.txt"
SETTINGS = {
    "node": 0, "nodes": NODES, "vector_beats": 1, "vector_packing": 0,
    # The addresses of nodes in tests/rtl/network/frames.py.
    "mac_base_low": 0x4D42FFFE, "mac_base_high": 0x0245, "ip_base": 0x0A45FFFE,
    "udp_port": 0x4853, "request_timeout": 16, "lookup_timeout": 16, "vector_timeout": 16,
    "result_timeout": 16}
"""Registers of the first node."""


def write_samples(folder: Path, count: int = SAMPLES) -> None:
    """Write ``count`` random samples to ``folder``."""
    rng = random.Random(SEED)
    (folder / _TRACE).write_text("".join(
        " ".join(f"{table}:{rng.randrange(rows)}" for table, rows in enumerate(_ROWS)
                 for _ in range(rng.randrange(4))) + "\n" for _ in range(count)))


def simulate(folder: Path):
    """Run the samples through ``sim run`` with a compiled NIC on every node.

    Return the configuration, the measured results, and the pooled vectors: float32 ``[samples,
    tables, dimension]``.
    """
    from sim.job.options import RunOptions
    from sim.run.run import Run

    write_samples(folder)
    run = Run(RunOptions.of(config="tiny", data=str(folder / _TRACE), format="trace", nodes=NODES,
                         mini_batch=SAMPLES // 2, seed=SEED, threads=1))
    check, answers = run.checks.check, {}

    def keep(step):
        answers[step.number] = step.answers.copy()
        return check(step)

    run.checks.check = keep
    result = run.execute()
    return run.config, result, np.concatenate([answers[number] for number in sorted(answers)])


def model_of(folder: Path) -> Model:
    """Return the model that ``sim run`` uses for the samples in ``folder``."""
    return default_model(folder / _TRACE, "trace")


def plan_of(folder: Path) -> ShardPlan:
    """Return the placement of its tables."""
    return ShardPlan.deal(model_of(folder), NODES)


def samples_of(folder: Path) -> Samples:
    """Return the samples in ``folder``, which are few enough for one part of the file."""
    (samples,) = open_samples(folder / _TRACE, "trace", model_of(folder))
    return samples
