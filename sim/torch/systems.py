"""What the mini-batches of a PyTorch program take on each system."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch

from host.batching import MiniBatch
from host.model import MODELS, Model
from host.samples import Samples
from rtl.config import preset
from sim.evaluation.fields import Workload
from sim.evaluation.measure import alone, busy_us
from sim.evaluation.point import Point
from sim.evaluation.search import Site
from sim.evaluation.system import INTERACTION_VECTORS
from sim.evaluation.systems import EN, FULL, canonical, system_of
from sim.evaluation.trace import Trace
from sim.job.fit import preset_of
from sim.job.settings import apply_settings
from sim.nic_cpp.config import WideConfig
from sim.torch.lookups.bags import Bags
from sim.torch.lookups.dense import Chains, with_mlps
from sim.torch.lookups.mini_batch import samples_of
from sim.torch.lookups.record import COUNTED, Kept
from sim.torch.lookups.tables import padded

__all__ = ["SYSTEMS", "Setting", "check_setting", "no_times", "times_of"]

SYSTEMS = {"EN": EN, "FS": FULL, "bl-tuned": "bl-tuned", "bl-paper": "bl-paper"}
"""The systems of the report, by the names that the evaluation has for them. FS without its graph
algorithm, which forms mini-batches from a window: these are formed by the program."""

_LARGE = f"the GPUs do the interaction: a NIC's has at most {INTERACTION_VECTORS} vectors"
_LEAST = 2
"""Mini-batches whose ends tell the time from one to the next."""


@dataclass(frozen=True)
class Setting:
    """Members: ``nodes``; ``placement`` of the tables, unless ``owners`` has the node of each table
    of the program; ``software`` and ``gpu``, profiles; ``settings``, ``field=value`` of the NICs;
    ``seed``."""

    nodes: int = 4
    placement: str = "even"
    software: str = "eager"
    gpu: str = "gpu_rtx8000"
    settings: tuple[str, ...] = ()
    seed: int = 1
    owners: tuple[int, ...] | None = None

    def of(self, tables: Sequence[int]) -> "Setting":
        """Return this setting for a model whose columns are of these tables of the program."""
        if self.owners is None:
            return self
        return replace(self, owners=None,
                       placement=",".join(str(self.owners[table]) for table in tables))


def times_of(kept: list[Kept], chains: Chains, training: bool, setting: Setting) -> dict:
    """Return the times of each system for mini-batches of one shape, as plain values.

    The first half of them warms the caches. The NICs are modelled, with the caches of the NIC's
    preset; each call of a forward pass is a table of its own.

    Members: ``mini_batches``, how many are measured; ``warmup``, how many come before them;
    ``steps``, the numbers of those that are measured; ``samples``, of each; ``model``, that is
    timed, in words; ``notes``; ``rows``, of each system, see :func:`_row`, or ``why`` there are
    none.
    """
    if len(kept) < _LEAST:
        return no_times(len(kept), f"times need {_LEAST} mini-batches of the same shape, not "
                                   f"{len(kept)}")
    trace, notes = _trace(kept, chains)
    setting = setting.of(kept[0].tables)
    rows = [_row(name, trace, training, setting) for name in SYSTEMS]
    return {"mini_batches": len(trace.measured), "warmup": trace.warmup,
            "steps": [each.step for each in kept[trace.warmup:]],
            "samples": trace.mini_batch, "model": _shape(trace.model), "notes": notes,
            "rows": rows, "why": None}


def no_times(count: int, why: str) -> dict:
    """Return what `times_of` does where so many mini-batches are not timed, and why, in words."""
    return {"mini_batches": count, "warmup": 0, "steps": [], "samples": None, "model": None,
            "notes": [], "rows": [], "why": why}


@lru_cache(maxsize=8)
def check_setting(setting: Setting) -> None:
    """Raise ``ValueError`` for settings with which no system can be timed, before a program has run
    for hours: a made-up one of two mini-batches is timed."""
    if not setting.settings:
        return
    table, keys = torch.empty((setting.nodes, 4), device="meta"), np.arange(setting.nodes)
    bags = Bags(table, keys, np.ones_like(keys), "sum")
    kept = [Kept((bags,), (0,), step) for step in range(_LEAST)]
    for training in (False, True):
        times_of(kept, Chains(), training, setting)


def _shape(model: Model) -> str:
    """Return in words the model that is timed."""
    layers = ["-".join(map(str, widths)) for widths in (
        (model.dense, *model.bottom), (model.interaction_width, *model.top))]
    pairs = {"dot": "dots", "cat": "a concatenation"}[model.interaction]
    return (f"{model.tables} tables of dimension {model.dimension}, a bottom MLP {layers[0]}, "
            f"{pairs}, a top MLP {layers[1]}")


def _trace(kept: list[Kept], chains: Chains) -> tuple[Trace, list[str]]:
    """Return mini-batches as the systems take them, and notes."""
    columns = kept[0].columns
    dimension = max(bags.dimension for bags in columns)
    name, held = preset_of(dimension), padded(dimension)
    means = all(bags.pooling == "mean" for bags in columns)
    model, notes = with_mlps(
        Model(tuple(len(bags.weight) for bags in columns), held, 1, (held,), (1,), "pytorch",
              pooling="mean" if means else "sum"), chains, dimension, MODELS[name])
    if len(set(kept[0].tables)) < len(columns):
        notes.append("a table that a forward pass looks up several times counts as several")
    count, size = len(kept), len(columns[0])
    warmup = count // 2 if count - count // 2 >= _LEAST else 0
    again = _again(kept, warmup)
    if again:
        notes.append(f"{again} of {count - warmup} mini-batches that are measured look up what an "
                     f"earlier one did, key by key: hits are those of data that comes again")
    batches = tuple(_batch(samples_of(each.columns, range(len(columns)), model.dense), number)
                    for number, each in enumerate(kept))
    of = Workload(name, mini_batch=size, seed=0, warmup=warmup, measured=count - warmup)
    return Trace(of, model, "the program", batches, warmup, size, size, (), changed=True), notes


def _again(kept: list[Kept], warmup: int) -> int:
    """Return how many of the mini-batches after the warm-up are the same as an earlier one."""
    seen, again = set[tuple[int, ...]](), 0
    for number, each in enumerate(kept):
        same = tuple(hash(bags.rows.tobytes()) for bags in each.columns)
        again += number >= warmup and same in seen
        seen.add(same)
    return again


def _batch(samples: Samples, number: int) -> MiniBatch:
    count = len(samples)
    return MiniBatch(samples, np.arange(number * count, (number + 1) * count), True,
                     len(np.unique(samples.keys)), None)


def _row(name: str, trace: Trace, training: bool, setting: Setting) -> dict:
    """Return what a system takes: ``system``; ``service_us``, a mini-batch alone; ``interval_us``,
    from one to the next; ``in_flight``, for the shortest interval; ``samples_per_second``;
    ``phases_us`` of a mini-batch alone; ``busy_us`` of each resource; ``hit_rate`` of the local
    caches, and ``saved`` lookups that do not travel, per mini-batch, None without; ``local_cache``,
    ``hits`` and ``accesses`` of these caches in each mini-batch alone, None without; ``notes``; or
    ``why`` it cannot be."""
    workload = "training" if training else "inference"
    size, own = trace.mini_batch, system_of(canonical(SYSTEMS[name], workload)[0])
    large = not training and trace.model.tables + 1 > INTERACTION_VECTORS
    caches, settings = _caches(setting.settings, trace.of.dataset)
    point = Point.named(
        **own.for_model(trace.model, workload), common=caches | {"settings": settings},
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
                  *([_LARGE] if large and own.has_nics else ())]}


def _caches(settings: tuple[str, ...],
            dataset: str) -> tuple[dict[str, float | None], tuple[str, ...]]:
    """Return the size of each cache, 0 of one that is switched off and None for all of its rows,
    and the settings without those two: a size sets its cache on or off itself."""
    _, runtime = apply_settings(WideConfig.of(preset(dataset)), list(settings))
    sizes = {name: None if getattr(runtime, name) else 0.0 for name in (
        "local_cache", "remote_cache")}
    return sizes, tuple(each for each in settings
                        if each.partition("=")[0].strip() not in sizes)
