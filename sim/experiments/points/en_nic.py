"""EN's NICs: their times for each measured mini-batch, by what they deliver."""

from dataclasses import replace

from host.model import Model
from host.systems import Delivery, Devices, EnTuning, delivery_of, ring_of
from host.systems.nic_times import NicTimes
from host.timing.clock import CYCLE_NS
from rtl.config import LANES, preset
from sim.experiments.points.en_trace import each_once, without_small
from sim.experiments.points.nic import NicPart, nic_part
from sim.experiments.points.placing import plan_of
from sim.experiments.points.point import Point
from sim.experiments.points.trace import Trace
from sim.files.store import Store
from sim.job.settings import apply_settings

__all__ = ["SIZES", "deliveries", "en_nic", "least_times", "nic_devices", "nic_point"]

SIZES = {"terabyte": ("hold_vectors=2048", "global_gradient_keys=2048")}
"""Buffers of a data set's NIC beyond its preset, twice the preset's hold buffer and table of
gradients: with launched gathers FS waits for the first, and in training for the second
(docs/evaluation.md). By bits, 64 + 32 + 16 + 134 URAM of an SLR's 320; no build has shown it."""

_SLOTS_PER_CYCLE = 0.95
"""Of the table of repeats: what DESIGN section 7 asks of it."""


def nic_point(point: Point, tuning: EnTuning) -> Point:
    """Return the point of a system of the paper with the NICs that EN has under ``tuning``."""
    parts = "lc" if point.workload == "training" else "lc+rc"
    if tuning.deliver == "interaction" or point.workload == "training":
        parts += "+sc"
    given = {each.partition("=")[0] for each in point.settings}
    sizes = tuple(each for each in SIZES.get(point.dataset, ()) if tuning.sizes
                  and each.partition("=")[0] not in given)
    return replace(point, system=parts, en=(), persistent_gather=tuning.ring, settings=(
        f"requester_merge={str(tuning.merge).lower()}", *sizes, *point.settings))


def nic_devices(devices: Devices, tuning: EnTuning) -> Devices:
    """Return the devices that EN's NICs see."""
    return ring_of(devices) if tuning.ring else devices


def deliveries(point: Point, trace: Trace, copied_rows: int) -> list[Delivery]:
    """Return what NICs deliver of each measured mini-batch where GPUs have copies of each table of
    at most so many rows."""
    small = tuple(rows <= copied_rows for rows in trace.model.rows)
    room = _room(point)
    return [delivery_of(batch.samples, small, point.nodes, room) for batch in trace.measured]


def least_times(model: Model, tuning: EnTuning, of: Delivery) -> NicTimes:
    """Return times that no NIC is below: a slot a cycle is looked up, and a beat a cycle moves of
    what is delivered, or of every slot where the NIC pools or interacts."""
    moved = of.vectors if tuning.deliver == "unique" else of.slots
    us = max(of.slots, moved * max(1, model.dimension // LANES)) * CYCLE_NS / 1e3
    return NicTimes({"embedding_lookup": us}, us)


def en_nic(point: Point, trace: Trace, devices: Devices, tuning: EnTuning,
           runs: Store | None = None) -> NicPart:
    """Return the times of EN's NICs.

    They are simulated over what is left of the trace without tables that the GPUs copy. Where each
    different vector is delivered once, they are simulated over a trace that has each key of a share
    once, as a bag that is a vector; the search for repeats, which the RTL does not have yet, is
    added in series: what is scanned but not asked for passes at `_SLOTS_PER_CYCLE`, and the index
    of the slots crosses PCIe behind the last vector.
    """
    base, seen = nic_point(point, tuning), nic_devices(devices, tuning)
    left = without_small(trace, tuning.copied_rows)
    if tuning.deliver != "unique":
        return nic_part(base, left, seen, runs)
    once = each_once(left, plan_of(base, left), _room(point))
    part = nic_part(replace(base, placement="even"), once, seen, runs)
    cycle = CYCLE_NS / 1e3 / _SLOTS_PER_CYCLE
    own = deliveries(point, trace, tuning.copied_rows)
    times = [_with_repeats(each, of, cycle, devices) for each, of in zip(part.times, own)]
    return replace(part, times=times, notes=[
        *part.notes, "analytical: NICs find repeats at 0.95 slots a cycle before they look up each "
        "key of a share once; no RTL delivers different vectors yet"])


def _with_repeats(times: NicTimes, of: Delivery, cycle_us: float, devices: Devices) -> NicTimes:
    """Return times of NICs with the search for repeats and the index added."""
    index = devices.copies.moving_us(of.index_bytes)
    scanned = (of.slots - of.vectors) * cycle_us
    phases = dict(times.phases)
    phases["input_all_to_all"] = phases.get("input_all_to_all", 0.0) + scanned
    phases["overhead"] = phases.get("overhead", 0.0) + index
    return replace(times, phases=phases,
                   interval_us=max(times.interval_us, of.slots * cycle_us))


def _room(point: Point) -> int:
    """Return the keys that a NIC's table of repeats holds: as many as the owner's dedupe table."""
    config, _ = apply_settings(preset(point.dataset), list(point.settings))
    return config.dedupe_keys
