"""EN's NICs: their times for each measured mini-batch, by what they deliver."""

from dataclasses import replace

from host.model import Model
from host.systems import Delivery, Devices, EnTuning, delivery_of, ring_of
from host.systems.nic_times import NicTimes
from host.timing.clock import CYCLE_NS
from rtl.config import LANES
from sim.evaluation.nic import NicPart, nic_part
from sim.evaluation.point import Point
from sim.evaluation.store import Store
from sim.evaluation.trace import Trace, plan_of, without_small
from sim.job.row_places import check_bar

__all__ = ["SIZES", "check_seen", "deliveries", "en_nic", "least_times", "nic_devices",
           "nic_point"]

SIZES = {"terabyte": ("hold_vectors=2048", "global_gradient_keys=2048")}
"""Buffers of a data set's NIC beyond its preset, twice the preset's hold buffer and table of
gradients: with launched gathers FS waits for the first, and in training for the second
(docs/evaluation.md). By bits, 64 + 32 + 16 + 134 URAM of an SLR's 320; no build has shown it."""


def nic_point(point: Point, devices: Devices, tuning: EnTuning) -> Point:
    """Return the point of a system of the paper with the NICs that EN has under ``tuning``: what
    they deliver, whether they open and complete steps, and whether lists and vectors pass rings in
    GPU memory, are settings of them."""
    parts = "lc" if point.workload == "training" else "lc+rc"
    if tuning.deliver == "interaction" or point.workload == "training":
        parts += "+sc"
    own = [f"requester_merge={str(tuning.merge).lower()}"]
    own += ["output_queues=true"] * tuning.queues
    own += ["deliver=unique"] * (tuning.deliver == "unique")
    if tuning.completion:
        flush = str(devices.gpu.gpu.flush_reads > 0).lower()
        own += ["completions=true", f"completion_flush={flush}"]
    own += ["gpu_rings=true"] * tuning.ring + ["row_reads=true"] * tuning.reads
    own += SIZES.get(point.dataset, ()) if tuning.sizes else ()
    given = {each.partition("=")[0] for each in point.settings}
    own = [each for each in own if each.partition("=")[0] not in given]
    return replace(point, system=parts, en=(), persistent_gather=tuning.ring,
                   settings=(*own, *point.settings))


def nic_devices(devices: Devices, tuning: EnTuning) -> Devices:
    """Return the devices that EN's NICs see."""
    return ring_of(devices) if tuning.ring else devices


def check_seen(point: Point, trace: Trace, devices: Devices, tuning: EnTuning) -> None:
    """Raise ``ValueError`` where NICs are to read rows that they do not see."""
    if tuning.reads:
        left = without_small(trace, tuning.copied_rows)
        check_bar(plan_of(nic_point(point, devices, tuning), left), left.model.dimension,
                  devices.gpu.gpu)


def deliveries(point: Point, trace: Trace, copied_rows: int) -> list[Delivery]:
    """Return what NICs deliver of each measured mini-batch where GPUs have copies of each table of
    at most so many rows."""
    small = tuple(rows <= copied_rows for rows in trace.model.rows)
    return [delivery_of(batch.samples, small, point.nodes) for batch in trace.measured]


def least_times(model: Model, tuning: EnTuning, of: Delivery, samples: int) -> NicTimes:
    """Return times that no NIC is below: a slot a cycle is looked up, and a beat a cycle moves of
    what is delivered, or of every slot where the NIC pools or interacts.

    ``samples``: of a share.
    """
    moved = of.vectors if tuning.deliver == "unique" else of.slots
    us = max(of.slots, moved * max(1, model.dimension // LANES)) * CYCLE_NS / 1e3
    return NicTimes({"embedding_lookup": us}, us,
                    delivered_bytes=of.result_bytes(tuning.deliver, model, samples))


def en_nic(point: Point, trace: Trace, devices: Devices, tuning: EnTuning,
           runs: Store | None = None) -> NicPart:
    """Return the times of EN's NICs, over what is left of the trace without tables that the GPUs
    copy.

    They deliver as ``tuning`` says, and with completions their times end with the word that each
    writes behind its last answer.
    """
    return nic_part(nic_point(point, devices, tuning), without_small(trace, tuning.copied_rows),
                    nic_devices(devices, tuning), runs)
