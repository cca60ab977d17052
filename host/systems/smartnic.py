"""Systems with a SmartNIC between each host, its GPU and the network (paper, section 4)."""

from collections.abc import Sequence

from host.devices.cost import Cost
from host.systems import dense
from host.systems.charge import charge, operators
from host.systems.devices import Devices
from host.systems.nic_times import NicTimes
from host.systems.options import StepOptions
from host.systems.stage import Step
from host.systems.tables import update_cost, vector_bytes
from host.systems.workload import Workload

__all__ = ["smartnic"]


def smartnic(w: Workload, d: Devices, options: StepOptions, nic: NicTimes,
             computation: bool = False, local_cache: bool = False) -> Step:
    """Return a step of a system with SmartNICs.

    The host hands the queries to its NIC with one copy, and dense features to its GPU with another.
    NICs exchange lookups and vectors; GPUs gather the rows that no cache holds. The host's thread
    launches each gather, before the operators of the bottom MLP. Pooled vectors land in GPU memory,
    and the host is notified as at the end of a kernel.

    ``computation``: in inference, NICs do the interaction once the bottom MLP is done; in training,
    they reduce gradients, exchange them and update rows. Without it in training, NICs carry
    gradients of bags from GPU to GPU as bytes (analytical), and GPUs work as in ``bl-paper``;
    updated rows are then written to the ``local_cache``, if there is one. ``nic``: times of the
    simulated NICs; the step holds the resource ``nic`` for its interval.
    """
    step = Step()
    queries = charge(step, "queries", "overhead", d.copies.copy(0.0, 1))
    interacting = computation and not options.training
    at = _nic(step, {name: us for name, us in nic.phases.items()
                     if not (interacting and name == "irregular")}, nic.interval_us, (queries,))
    calls = _gather_calls(step, d, nic, (queries,))
    share = float(4 * w.model.dense * w.samples.max())
    inputs = charge(step, "dense features", "overhead", d.copies.copy(share, 1), calls)
    bottom = operators(step, d.gpu, [dense.bottom(w)], (inputs,))
    done: tuple[int, ...] = (*at, bottom, *calls)
    if interacting:
        done = (step.add("interaction on the NIC", "irregular", nic.phases.get("irregular", 0.0),
                         "nic", after=done),)
    there = charge(step, "answers", "overhead", d.gpu.synchronize(), done)
    at = (operators(step, d.gpu, dense.top(w, not interacting), (there,)),)
    if not options.training:
        dense.predictions(step, w, d, at)
        return step
    at = (operators(step, d.gpu, dense.backward(w), at),)
    if computation:
        rows = _nic_update(step, w, d, nic, at)
    else:
        rows = _gpu_update(step, w, d, local_cache, at)
    weights = operators(step, d.gpu, [dense.bottom_backward(w)], at)
    weights = dense.all_reduce(step, w, d, (weights,), options.all_reduce)
    charge(step, "end", "overhead", d.gpu.synchronize(), (rows, weights))
    return step


def _nic(step: Step, phases: dict[str, float], hold: float,
         after: Sequence[int]) -> tuple[int, ...]:
    """Add the NIC's phases, the first ``hold`` microseconds of which occupy the NIC."""
    at = tuple(after)
    for phase, us in phases.items():
        held = min(us, hold)
        hold -= held
        for part, resources in ((held, ("nic",)), (us - held, ())):
            if part > 0:
                at = (step.add(phase, phase, part, *resources, after=at),)
    return at


def _gather_calls(step: Step, d: Devices, nic: NicTimes, after: Sequence[int]) -> tuple[int, ...]:
    """Add the host's gather launches; the NIC's times already include their latency."""
    if not nic.launches:
        return tuple(after)
    calls = nic.launches * d.call_us
    return (charge(step, "gather calls", "overhead", Cost(calls, calls, {"cpu": calls}), after),)


def _nic_update(step: Step, w: Workload, d: Devices, nic: NicTimes, after: Sequence[int]) -> int:
    """Add the NIC's update: gradients are handed over, reduced, exchanged and applied."""
    at = charge(step, "gradients", "overhead", d.gpu.synchronize() + d.copies.copy(0.0, 1), after)
    moving = min(nic.update_us, _link_us(w, d, w.requested))
    return charge(step, "rows", "backward_all_to_all",
                  Cost(nic.update_us, 0.0, {"nic": nic.update_us, "link": moving}), (at,))


def _gpu_update(step: Step, w: Workload, d: Devices, local_cache: bool,
                after: Sequence[int]) -> int:
    """Add the GPUs' update: NICs carry bag gradients to the owners' GPUs, which apply them."""
    at = charge(step, "gradients", "overhead", d.gpu.synchronize() + d.copies.copy(0.0, 1), after)
    size = vector_bytes(w)
    if w.nodes > 1:
        link = _link_us(w, d, w.bags)
        # The slowest of three consecutive links: PCIe at either end, the network between.
        crossing = max(link, float(size * max(w.bags.sum(axis=1).max(), w.bags.sum(axis=0).max()))
                       / (d.pcie.bandwidth_gb_s * 1e3))
        latency = 2 * d.pcie.one_way_us + d.network.one_way_us
        at = charge(step, "gradients", "backward_all_to_all",
                    Cost(latency + crossing, 0.0, {"nic": crossing, "link": link}), (at,))
    at = charge(step, "row update", "backward_all_to_all",
                update_cost(w, d.gpu, d.software.fused_embedding), (at,))
    if not local_cache:
        return at
    written = d.gpu.synchronize() + d.copies.copy(float(size * w.unique.max()), 1)
    return charge(step, "rows to the cache", "backward_all_to_all", written, (at,))


def _link_us(w: Workload, d: Devices, vectors) -> float:
    """Return the time of the busiest link for ``vectors`` ``[nodes, nodes]``."""
    return float(d.host_mpi.topology.link_us(vector_bytes(w) * vectors).max())
