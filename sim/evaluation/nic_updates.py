"""The gradient path of a point's NICs: how long it takes, and which rows it updates."""

from dataclasses import dataclass, replace

from host.systems import Devices, NicTimes
from rtl.config import preset
from sim.evaluation.fields import Fields
from sim.evaluation.gradient_path import GradientPath
from sim.evaluation.nic import NicPart, Nics, cache_rows, options_of, serving
from sim.evaluation.reductions import Updates, reductions, updates_of_trace
from sim.evaluation.trace import Trace, plan_of
from sim.evaluation.workloads import Workloads, gradient_traffic
from sim.job.settings import apply_settings
from sim.training.options import TrainOptions
from sim.training.train import train

__all__ = ["STEPS", "Trained", "trained", "updates_of", "with_updates"]

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


def trained(point: Fields, nics: Nics, trace: Trace, devices: Devices) -> Trained:
    """Train the NICs of a point.

    Of the first `STEPS` mini-batches of the trace, or those of its first window.
    """
    rows, _ = cache_rows(point, nics, trace)
    run = options_of(point, nics, trace, devices,
                     serving(point, nics, devices, trace.model)[0], rows, False, 1)
    formed = {} if point.workload.batching == "file" else {"batching": point.workload.batching,
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


def with_updates(point: Fields, nics: Nics, trace: Trace, devices: Devices, work: Workloads,
                 nic: NicPart) -> NicPart:
    """Return ``nic`` with the times of the gradient path, where the NICs have it."""
    if "sc" not in nics.parts and not nics.on_card:
        return nic
    if point.system.fidelity == "rtl":
        ran = trained(point, nics, trace, devices)
        times: list[NicTimes] = [replace(times, update_us=ran.update_us) for times in nic.times]
        return replace(nic, times=times, traffic=nic.traffic | {"gradients": ran.gradients})
    config, runtime = apply_settings(preset(point.workload.dataset), list(nics.settings_of(point)))
    path = GradientPath(config, devices, serving(point, nics, devices, trace.model)[0],
                        runtime.gradient_timeout)
    sums = reductions(trace, plan_of(point, trace), config)
    times = [replace(times, update_us=path.us(*of)) for times, *of in zip(
        nic.times, work.plain, sums, updates_of(point, nics, trace, nic).misses)]
    return replace(nic, times=times, traffic=nic.traffic | {
        "gradients": gradient_traffic(work.plain, sums)}, notes=[
        *nic.notes, "the gradient path of the NICs from its events, not from RTL"])


def updates_of(point: Fields, nics: Nics, trace: Trace, nic: NicPart) -> Updates:
    """Return the rows that the measured steps update, and those of them that no cache holds."""
    config, _ = apply_settings(preset(point.workload.dataset), list(nics.settings_of(point)))
    return updates_of_trace(trace, plan_of(point, trace),
                            nic.local_cache["rows"] if nic.local_cache else 0,
                            config.local_cache_ways, config.policy)
