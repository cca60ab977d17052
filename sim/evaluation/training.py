"""The gradient path in RTL: its time and its traffic, from a training run."""

from dataclasses import dataclass

from host.systems import Devices
from sim.evaluation.nic import cache_rows, options_of, serving
from sim.evaluation.point import Point
from sim.evaluation.trace import Trace
from sim.training.options import TrainOptions
from sim.training.train import train

__all__ = ["STEPS", "Trained", "trained"]

STEPS = 8
"""Steps of the training run; a whole window where mini-batches are formed from one."""


@dataclass(frozen=True)
class Trained:
    """Time and traffic of the gradient path, for the mean mini-batch.

    Members
    -------
    update_us: from the last gradients to the last row written.
    gradients: ``bytes`` and ``packets`` of partial sums that NICs sent each other.
    """

    update_us: float
    gradients: dict[str, float]


def trained(point: Point, trace: Trace, devices: Devices) -> Trained:
    """Train the NICs of a point.

    Of the first `STEPS` mini-batches of the trace, or those of its first window.
    """
    rows, _ = cache_rows(point, trace)
    run = options_of(point, trace, devices, serving(point, devices, trace.model)[0], rows, False, 1)
    formed = {} if point.batching == "file" else {"batching": point.batching,
                                                  "window": trace.window}
    result = train(TrainOptions.of(**{
        name: getattr(run.workload, name) for name in (
            "config", "settings", "nodes", "placement", "lookups", "mini_batch", "data", "format",
            "network", "pcie", "gpu", "seed")},
        mlp=run.simulation.mlp, threads=run.simulation.threads,
        samples=max(STEPS * trace.mini_batch, trace.window if formed else 0), compare=False,
        **formed))
    if result["phases_us"] is None or not result["complete"]:
        raise RuntimeError(f"the training of the NICs failed: {result['stuck']}")
    return Trained(result["phases_us"]["update"], {
        unit: sum(node[unit] for node in result["backward"]) / result["steps"]
        for unit in ("bytes", "packets")})
