"""Gradient path of a point's NICs: its time per step, and the rows that it updates."""

from dataclasses import replace

from host.batching import REPEATS
from host.dlrm.formats import gradients_beside
from host.systems import UPDATES, Devices, workload_of
from rtl.config import preset
from sim.evaluation.fields import Fields
from sim.evaluation.nic import NicPart, updates_of
from sim.evaluation.nic_options import Nics, cache_rows, options_of, serving
from sim.evaluation.trace import Trace, plan_of, tally_of
from sim.evaluation.workloads import Workloads, bag_traffic, gradient_traffic, reductions
from sim.job.settings import apply_settings
from sim.offline.gradient_path import GradientPath
from sim.training.options import TrainOptions
from sim.training.train import train

__all__ = ["trained", "with_updates"]

STEPS = 8
"""Steps of the training run, or the steps of one window if batching uses windows."""


def trained(point: Fields, nics: Nics, trace: Trace,
            devices: Devices) -> tuple[float, dict[str, float]]:
    """Train with the point's NICs on the first `STEPS` mini-batches, or on those of a window.

    Returns, per mini-batch, the microseconds from the last gradient to the last written row, and
    ``bytes`` and ``packets`` of the partial sums between NICs.
    """
    rows, _ = cache_rows(point, nics, trace)
    run = options_of(point, nics, trace, devices,
                     serving(point, nics, devices, trace.model)[0], rows, False, 1)
    formed = {} if point.workload.batching == "file" else {"batching": point.workload.batching,
                                                  "window": trace.window}
    result = train(TrainOptions.of(**{
        name: getattr(run.workload, name) for name in (
            "config", "settings", "nodes", "placement", "lookups", "mini_batch", "data", "format",
            "network", "pcie", "gpu", "seed", "model", "owner_tables", "repeats")},
        update=point.system.update, mlp=run.simulation.mlp, threads=run.simulation.threads,
        samples=max(STEPS * trace.mini_batch, trace.window if formed else 0), compare=False,
        **formed))
    if result["phases_us"] is None or not result["complete"]:
        raise RuntimeError(f"the training of the NICs failed: {result['stuck']}")
    return result["phases_us"]["update"], {
        unit: sum(node[unit] for node in result["backward"]) / result["steps"]
        for unit in ("bytes", "packets")}


def with_updates(point: Fields, nics: Nics, trace: Trace, devices: Devices, work: Workloads,
                 nic: NicPart) -> NicPart:
    """Return ``nic`` with the times of the gradient path, if the NICs have one."""
    if "sc" not in nics.parts and not nics.on_card:
        return nic
    config, runtime = apply_settings(preset(point.workload.preset), list(nics.settings_of(point)))
    path = GradientPath(config, devices, serving(point, nics, devices, trace.model)[0],
                        runtime.gradient_timeout)
    plan = plan_of(point, trace)
    gpus = plan.pools_at_owner and point.system.update == UPDATES[0]
    repeats = point.system.repeats
    sums = reductions(trace, plan, config, gpus, repeats)
    bags = (bag_traffic(trace, plan, config, runtime, repeats,
                        gradients_beside(nics.wire)) if gpus else
            (None,) * len(sums))
    found, times = updates_of(point, nics, trace, nic), []
    for number, (each, w, of, rows, missed, sent) in enumerate(zip(
            nic.times, work.plain, sums, found.rows, found.misses, bags)):
        parts = [w]
        if sent is not None:
            parts = [workload_of(
                trace.measured[number].samples, trace.model, plan,
                tally_of(trace, number, plan.nodes), (plan.owner_pooled > 0) == owner)
                for owner in (False, True)]
        if repeats != REPEATS[0]:
            parts = [each.once for each in parts]
        w, reduced = parts[0], None if parts[0] is w else parts[0]
        other = None if sent is None else path.of_gpus(parts[1], sent)
        us, launches = path.us_and_launches(w, of, missed, sent) if w.accesses else (0.0, 0)
        times.append(replace(each, update_us=us, update_launches=float(launches),
                             updated=float(rows.max()), missed=float(missed.max()),
                             reduced=reduced, owner_updates=other))
    found = [each for each in bags if each is not None]
    if point.system.fidelity == "rtl":
        us, sent = trained(point, nics, trace, devices)
        more = gradient_traffic(work.plain, (), found)
        return replace(nic, times=[replace(each, update_us=us) for each in times],
                       traffic=nic.traffic | {"gradients": {
                           unit: value + more[unit] for unit, value in sent.items()}})
    return replace(nic, times=times, traffic=nic.traffic | {
        "gradients": gradient_traffic(work.plain, sums, found, config.net_payload_beats)}, notes=[
        *nic.notes, "gradient path of the NICs: timing model, not RTL"])
