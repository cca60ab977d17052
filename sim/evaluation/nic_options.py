"""Options of the runs of a point's NICs: settings, sizes of caches, and the profile that serves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gen.base.settings import overridden, setting_name
from host.distinct import distinct
from host.dlrm.formats import in_lanes
from host.model import Model
from host.once import once
from host.placement.shard import ShardPlan
from host.systems import Devices
from host.timing.gpu import GpuProfile
from rtl.config import preset
from sim.evaluation.fields import Fields, model_of
from sim.evaluation.pooling import segments_of, slots_of
from sim.evaluation.trace import Trace, nic_plan_of, placement_of
from sim.job.fit import sizes_beyond
from sim.job.options import RunOptions
from sim.job.settings import apply_settings

__all__ = ["BAG_BEATS", "HBM", "SEEN_GIB", "Nics", "as_nics_see", "cache_rows", "options_of",
           "serving", "sizes_for"]

HBM = GpuProfile("hbm_u280", launch_us=0.1222, memory_bandwidth_gb_s=152.0, access_bytes=64,
                 streams=32, kernel_us=0.0)
"""The card's HBM as a GPU profile, for the system with everything on the NIC: latency of a closed
row, random 64-byte reads on all channels. Sources: Shuhai and AMD's tutorial."""

BAG_BEATS = 16_384
"""Beats of bags that NICs hold where tables pool at their owner: the most of a NIC, 31 URAM. With
16 nodes, a requester may send 57 KB ahead to an owner, and credit returns with pooled vectors. At a
seventh of 100 Gb/s, that lasts 32 us, longer than a list takes through the GPU."""


@dataclass(frozen=True)
class Nics:
    """The NICs of a system. Members: ``parts``, of :data:`sim.evaluation.system.PARTS`;
    ``settings``, ``field=value`` for all points of the system; ``on_card``, whether rows are in the
    card's HBM instead of a GPU; ``wire``, format of vectors, one of `host.systems.WIRES`."""

    parts: frozenset[str] = frozenset()
    settings: tuple[str, ...] = ()
    on_card: bool = False
    wire: str = "float32"

    def settings_of(self, point: Fields, more: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the settings of a point's NICs. Settings of the point, and ``more``, replace those
        of the system."""
        return overridden(self.settings, (*more, *point.system.settings))


def serving(point: Fields, nics: Nics, devices: Devices,
            model: Model | None = None) -> tuple[GpuProfile, bool]:
    """Return the profile that serves the NICs' lookups, as they see it, and whether the host
    launches each gather.

    ``model``: model whose rows are gathered; None for the model of the point's data set.
    """
    gpu, called = _answering(point, nics, devices)
    model = model or model_of(point.workload.dataset)
    return as_nics_see(gpu.together(point.cluster.gpus_per_nic), 4 * model.width,
                       4 * in_lanes(model, nics.wire).width), called


SEEN_GIB = 16384.0
"""BAR size that exceeds any table, for profiles whose BAR size does not matter."""


def as_nics_see(gpu: GpuProfile, row_bytes: int, vector_bytes: int | None = None) -> GpuProfile:
    """Return a profile that gives NIC runs the same times, equal for all GPUs that do so.

    Runs with equal options are shared, so fields that NICs never read are set to constants:
    multiprocessors, streams, effects of kernels side by side, and the factors of the memory rate.
    The bandwidth is the rate at which rows of ``row_bytes`` are read. NICs get a vector of
    ``vector_bytes`` for each row, None for all bytes of the row; the rate of gathers counts bytes
    of vectors. ``float32_tflops`` is the rate of products. ``launch_us`` already contains a
    resident kernel's ``poll_us``. A pace that is no longer than a call is none. Checks of the BAR
    size use the original profile.
    """
    rate = (gpu.memory_bandwidth_gb_s * gpu.gather_fraction
            * (row_bytes / max(row_bytes, gpu.access_bytes)))
    return replace(gpu, memory_bandwidth_gb_s=rate, access_bytes=1,
                   gather_fraction=(vector_bytes or row_bytes) / row_bytes,
                   float32_tflops=gpu.float32_tflops * gpu.gemm_fraction, gemm_fraction=1.0,
                   stream_fraction=1.0, multiprocessors=1, block_bytes=1, poll_us=1.0, word_us=1.0,
                   resident_multiprocessors=1, flush_reads=0, bar_gib=SEEN_GIB, beside_fraction=1.0,
                   beside_us=0.0, pace_us=gpu.pace_us if gpu.pace_us > gpu.call_us else 0.0,
                   source={})


def _answering(point: Fields, nics: Nics, devices: Devices) -> tuple[GpuProfile, bool]:
    if nics.on_card:
        return HBM, False
    gpu = devices.gpu.gpu
    if point.system.persistent_gather:  # the kernel polls for lists and never ends
        return replace(gpu, launch_us=gpu.poll_us, kernel_us=0.0), False
    # A driver that waits launches in one call for all lists that arrive meanwhile.
    return replace(gpu, call_us=devices.software.launch_call_us,
                   pace_us=point.system.pace_us), True


def options_of(point: Fields, nics: Nics, trace: Trace, devices: Devices, gpu: GpuProfile,
               rows: dict[str, int | None], interaction: bool, depth: int,
               placed: Trace | None = None) -> RunOptions:
    """Return the options of a run of a point's NICs; ``placed``: trace of the placement, if it is
    not ``trace``."""
    own, workload, nodes = nics.settings_of(point), point.workload, point.cluster.all_nics
    settings = [f"interaction={str(interaction).lower()}"]
    if not any(setting.startswith("requester_merge=") for setting in own):
        settings.append("requester_merge=false")
    config = preset(workload.preset)
    for cache, held in rows.items():
        settings.append(f"{cache}={str(held != 0).lower()}")
        if held:
            ways = getattr(config, f"{cache}_ways")
            if held > getattr(config, f"{cache}_rows"):
                settings.append(f"{cache}_rows={held}")
            else:
                settings.append(f"{cache}_sets={held // ways}")
    own_model = trace.changed or not workload.of_paper or nics.wire != "float32"
    return RunOptions.of(
        config=workload.preset,
        model=in_lanes(trace.model, nics.wire) if own_model else None,
        settings=(*settings, *nics.settings_of(point, sizes_for(point, nics, trace, interaction))),
        nodes=nodes,
        samples=sum(len(batch.samples) for batch in trace.batches), mini_batch=trace.mini_batch,
        in_flight=depth, data=workload.data or None, format=workload.format, threads=1,
        fidelity=point.system.fidelity, network=devices.network, pcie=devices.pcie, gpu=gpu,
        mlp="blas", seed=workload.seed, placement=placement_of(point, placed or trace),
        copied_rows=point.system.copied_rows, gpus=point.cluster.gpus_per_nic,
        owner_tables=point.system.owner_tables, own_bags=point.system.own_bags,
        repeats=point.system.repeats)


def sizes_for(point: Fields, nics: Nics, trace: Trace, interaction: bool) -> tuple[str, ...]:
    """Return sizes beyond the NICs' own that the trace and their number require, as
    ``field=value``; a size that the point sets stays."""
    model, given = in_lanes(trace.model, nics.wire), set(map(setting_name, point.system.settings))
    owner = point.system.owner_tables
    wanted = {"nodes": point.cluster.all_nics, "tables": model.tables,
              "max_dimension": model.width,
              "interaction_vectors": (
                  model.tables + 1 if interaction and model.interaction == "dot" else 0),
              "hold_vectors": 2 * slots_of(trace, owner)}
    if owner:
        wanted |= {"bag_segments": segments_of(trace, nic_plan_of(point, trace)),
                   "owner_bag_beats": BAG_BEATS}
    config, _ = apply_settings(preset(point.workload.preset), list(nics.settings))
    return sizes_beyond(config, {name: size for name, size in wanted.items()
                                 if name not in given})


def cache_rows(point: Fields, nics: Nics,
               trace: Trace) -> tuple[dict[str, int | None], list[str]]:
    """Return the rows of each cache (0 if it is off, None for the preset's size), and notes.

    A share refers to the unique keys of the whole trace that reach a cache of the mean node: owned
    keys for the local cache, requested foreign keys for the remote cache. Rows are whole sets, at
    least one. ``ValueError`` for more rows than the preset has in fidelity rtl.
    """
    config = preset(point.workload.preset)
    rows: dict[str, int | None] = {}
    notes = []
    for cache, part in (("local_cache", "lc"), ("remote_cache", "rc")):
        share = getattr(point.system, cache)
        if part not in nics.parts or share == 0:
            rows[cache] = 0
            continue
        most, ways = (getattr(config, f"{cache}_{what}") for what in ("rows", "ways"))
        if share is None:
            rows[cache] = None
            continue
        reach = reaching(trace, nic_plan_of(point, trace))[cache]
        rows[cache] = ways * max(1, round(share * reach / ways))
        if rows[cache] > most:
            if point.system.fidelity == "rtl":
                raise ValueError(f"{cache} must be at most {most / reach:.3f} of the {reach:,.0f} "
                                 f"unique keys in fidelity rtl, the {most:,} rows of the preset, "
                                 f"not {share!r}")
            notes.append(f"{cache} of {rows[cache]:,} rows is above the {most:,} of the preset")
    return rows, notes


@once
def reaching(trace: Trace, plan: ShardPlan) -> dict[str, float]:
    """Return the unique keys of the trace that reach each cache of the mean node."""
    nodes = plan.nodes
    owned, foreign = [], [[] for _ in range(nodes)]
    own = plan.own_by_node
    for batch in trace.batches:
        samples, requester = batch.samples, batch.samples.requesters(nodes)
        owner, keys = plan.owner_of(samples.tables, samples.rows, requester), samples.keys
        looked_up = ((plan.owner_pooled == 0) & ~own)[requester, samples.tables]
        requester, owner, keys = requester[looked_up], owner[looked_up], keys[looked_up]
        owned.append(keys)
        for node in range(nodes):
            foreign[node].append(distinct(keys[(requester == node) & (owner != node)]))
    return {"local_cache": len(distinct(np.concatenate(owned))) / nodes,
            "remote_cache": sum(len(distinct(np.concatenate(found)))
                                for found in foreign) / nodes}
