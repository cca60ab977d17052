"""Estimated times of a program's mini-batches on each system."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch

from host.batching import MiniBatch
from host.model import MODELS, Model, padded
from host.samples import Samples
from rtl.config import preset
from sim.evaluation.fields import Workload
from sim.evaluation.measure import alone, busy_us
from sim.evaluation.point import Point
from sim.evaluation.site import Site
from sim.evaluation.system import INTERACTION_VECTORS, nics_interact
from sim.evaluation.systems import EN, FULL, canonical, system_of
from sim.evaluation.trace import Trace
from sim.job.fit import preset_of
from sim.job.settings import apply_settings
from sim.nic_cpp.config import WideConfig
from sim.torch.lookups.bags import Bags
from sim.torch.lookups.dense import Chains, with_mlps
from sim.torch.lookups.mini_batch import samples_of
from sim.torch.lookups.record import COUNTED, Kept

__all__ = ["SYSTEMS", "Setting", "check_setting", "no_times", "times_of"]

SYSTEMS = {"EN": EN, "FS": FULL, "bl-tuned": "bl-tuned", "bl-paper": "bl-paper"}
"""Systems of the report and their names in the evaluation. FS runs without its graph algorithm,
because the program forms its own mini-batches."""

_LARGE = f"the GPUs compute the interaction: a NIC supports at most {INTERACTION_VECTORS} vectors"
_MIXED = "the GPUs compute the interaction: a NIC supports one dimension and one pooling"
_LEAST = 2
"""The fewest mini-batches that give an interval."""


@dataclass(frozen=True)
class Setting:
    """Setting in which mini-batches are timed.

    nodes: number of nodes.
    placement: placement of the tables, unless ``owners`` is set.
    software, gpu: names of profiles.
    settings: ``field=value`` of the NICs.
    seed: seed of the systems.
    owners: node of each table of the program; None to use ``placement``.
    """

    nodes: int = 4
    placement: str = "even"
    software: str = "eager"
    gpu: str = "gpu_rtx8000"
    settings: tuple[str, ...] = ()
    seed: int = 1
    owners: tuple[int, ...] | None = None

    def of(self, tables: Sequence[int]) -> "Setting":
        """Return this setting for a model whose columns use these tables of the program."""
        if self.owners is None:
            return self
        return replace(self, owners=None,
                       placement=",".join(str(self.owners[table]) for table in tables))


def times_of(kept: list[Kept], chains: Chains, training: bool, setting: Setting) -> dict:
    """Return the times of each system for mini-batches of one shape, as plain values.

    The first half of the mini-batches warms the caches. NICs are modelled with the caches of their
    preset. Each call of a forward pass counts as a separate table.

    Members
    -------
    mini_batches: number of measured mini-batches.
    warmup: number of mini-batches before them.
    steps: numbers of the measured mini-batches in the record.
    samples: samples of each mini-batch.
    model: timed model, in words.
    notes: remarks for the user.
    rows: a row for each system, see :func:`_row`.
    why: reason for missing rows; None if there are rows.
    """
    if len(kept) < _LEAST:
        return no_times(len(kept), f"times require {_LEAST} mini-batches of the same shape, not "
                                   f"{len(kept)}")
    trace, notes = _trace(kept, chains)
    setting = setting.of(kept[0].tables)
    rows = [_row(name, trace, training, setting) for name in SYSTEMS]
    return {"mini_batches": len(trace.measured), "warmup": trace.warmup,
            "steps": [each.step for each in kept[trace.warmup:]],
            "samples": trace.mini_batch, "model": _shape(trace.model), "notes": notes,
            "rows": rows, "why": None}


def no_times(count: int, why: str) -> dict:
    """Return the result of `times_of` for ``count`` mini-batches without times; ``why`` is the
    reason."""
    return {"mini_batches": count, "warmup": 0, "steps": [], "samples": None, "model": None,
            "notes": [], "rows": [], "why": why}


@lru_cache(maxsize=8)
def check_setting(setting: Setting) -> None:
    """Raise ``ValueError`` if no system can be timed with a setting.

    Times two generated mini-batches, to find the error before a program runs for hours.
    """
    if not setting.settings:
        return
    table, keys = torch.empty((setting.nodes, 4), device="meta"), np.arange(setting.nodes)
    bags = Bags(table, keys, np.ones_like(keys), "sum")
    kept = [Kept((bags,), (0,), step) for step in range(_LEAST)]
    for training in (False, True):
        times_of(kept, Chains(), training, setting)


def _shape(model: Model) -> str:
    """Describe the timed model in words."""
    layers = ["-".join(map(str, widths)) for widths in (
        (model.dense, *model.bottom), (model.interaction_width, *model.top))]
    pairs = {"dot": "dots", "cat": "a concatenation"}[model.interaction]
    least, most = min(model.table_dimensions), max(model.table_dimensions)
    return (f"{model.tables} tables of dimension {least}{f' to {most}' if most > least else ''}, "
            f"a bottom MLP {layers[0]}, "
            f"{pairs}, a top MLP {layers[1]}")


def _trace(kept: list[Kept], chains: Chains) -> tuple[Trace, list[str]]:
    """Return mini-batches as a trace for the systems, and notes."""
    columns = kept[0].columns
    dimensions = tuple(bags.dimension for bags in columns)
    widest = max(dimensions)
    name = preset_of(padded(widest))
    model, notes = with_mlps(
        Model(tuple(len(bags.weight) for bags in columns), widest, 1, (widest,), (1,), "pytorch",
              interaction="cat" if min(dimensions) < widest else "dot", dimensions=dimensions,
              poolings=tuple(bags.pooling for bags in columns)), chains, MODELS[name])
    if len(set(kept[0].tables)) < len(columns):
        notes.append("a table with several lookups in a forward pass counts as several tables")
    count, size = len(kept), len(columns[0])
    warmup = count // 2 if count - count // 2 >= _LEAST else 0
    again = _again(kept, warmup)
    if again:
        notes.append(f"{again} of {count - warmup} measured mini-batches repeat an earlier "
                     f"mini-batch key by key: the hit rates are those of repeated data")
    batches = tuple(_batch(samples_of(each.columns, range(len(columns)), model.dense), number)
                    for number, each in enumerate(kept))
    of = Workload(name, mini_batch=size, seed=0, warmup=warmup, measured=count - warmup)
    return Trace(of, model, "the program", batches, warmup, size, size, (), changed=True,
                 only=True), notes


def _again(kept: list[Kept], warmup: int) -> int:
    """Return how many mini-batches after the warm-up repeat an earlier mini-batch."""
    seen, again = set[tuple[int, ...]](), 0
    for number, each in enumerate(kept):
        same = tuple(hash(bags.rows.tobytes()) for bags in each.columns)
        again += number >= warmup and same in seen
        seen.add(same)
    return again


def _batch(samples: Samples, number: int) -> MiniBatch:
    count = len(samples)
    return MiniBatch(samples, np.arange(number * count, (number + 1) * count), True)


def _row(name: str, trace: Trace, training: bool, setting: Setting) -> dict:
    """Return the times and counts of a system.

    Members
    -------
    system: name of the system.
    service_us: time of a mini-batch alone.
    interval_us: time between two mini-batches.
    in_flight: mini-batches in flight for the shortest interval.
    samples_per_second: throughput.
    phases_us: phases of a mini-batch alone.
    busy_us: busy time of each resource.
    hit_rate: of the local caches; None without NICs.
    saved: lookups per mini-batch that the network does not transport; None without NICs.
    local_cache: ``hits`` and ``accesses`` of these caches in each mini-batch; None without NICs.
    notes: remarks for the user.
    """
    workload = "training" if training else "inference"
    size, own = trace.mini_batch, system_of(canonical(SYSTEMS[name], workload)[0])
    served = own.for_model(trace.model, workload)
    caches, settings = _caches(setting.settings, trace.of.dataset)
    point = Point.named(
        **served, common=caches | {"settings": settings},
        dataset=trace.of.dataset, workload=workload, nodes=setting.nodes, mini_batch=size,
        software=setting.software, gpu=setting.gpu, placement=setting.placement,
        warmup=trace.warmup, measured=len(trace.measured), seed=setting.seed)
    built, nic = point.kind.at(Site.of(point, trace=trace))
    service, phases = alone(built.steps)
    interval = built.interval_us
    count = len(trace.measured)
    local = nic.local_cache if nic else None
    return {
        "system": name, "service_us": service, "interval_us": interval,
        "in_flight": built.in_flight, "samples_per_second": size / interval * 1e6,
        "phases_us": phases, "busy_us": busy_us(built.steps),
        "hit_rate": local and local["hit_rate"],
        "saved": nic.saved_lookups / count if nic and nic.saved_lookups is not None else None,
        "local_cache": nic and nic.by_mini_batch and dict(zip(
            COUNTED, map(list, zip(*nic.by_mini_batch)))),
        "notes": [*(nic.notes if nic else ()), *built.notes,
                  *([_MIXED if trace.model.mixed else _LARGE]
                    if own.has_nics and not training and not nics_interact(trace.model) else ())]}


def _caches(settings: tuple[str, ...],
            dataset: str) -> tuple[dict[str, float | None], tuple[str, ...]]:
    """Return the size of each cache, and the settings without the two cache switches.

    Size 0 means off; None means all rows. A size switches its cache on or off itself.
    """
    _, runtime = apply_settings(WideConfig.of(preset(dataset)), list(settings))
    sizes = {name: None if getattr(runtime, name) else 0.0 for name in (
        "local_cache", "remote_cache")}
    return sizes, tuple(each for each in settings
                        if each.partition("=")[0].strip() not in sizes)
