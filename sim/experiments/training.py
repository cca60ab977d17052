"""The gradient path of RTL: how long it takes, from a training that is run."""

from host.systems import Devices
from sim.training.options import TrainOptions
from sim.training.train import train

from .nic import cache_rows, options_of
from .point import Point
from .trace import Trace

__all__ = ["STEPS", "trained_update_us"]

STEPS = 8
"""Steps that are trained for it; a whole window where mini-batches are formed from one."""


def trained_update_us(point: Point, trace: Trace, devices: Devices) -> float:
    """Return the mean microseconds from the last gradients to the last row written.

    Of the first `STEPS` mini-batches of the trace, or those of its first window.
    """
    rows, _ = cache_rows(point, trace)
    run = options_of(point, trace, devices, devices.gpu.gpu, rows, False, 1)
    formed = {} if point.batching == "file" else {"batching": point.batching,
                                                  "window": trace.window}
    result = train(TrainOptions.of(**{
        name: getattr(run, name) for name in ("config", "settings", "nodes", "mini_batch", "data",
                                              "format", "network", "pcie", "gpu", "mlp", "seed",
                                              "threads")},
        samples=max(STEPS * trace.mini_batch, trace.window if formed else 0), compare=False,
        **formed))
    if result["phases_us"] is None or not result["complete"]:
        raise RuntimeError(f"the training of the NICs failed: {result['stuck']}")
    return result["phases_us"]["update"]
