"""MLPs, lookups and EN's expanding kernel on an H100; the constants come from the same run."""

from collections.abc import Iterable, Iterator

from host.devices.dense_work import mlp
from host.devices.embedding_work import expanded_interaction, gather
from host.devices.gpu_time import GpuTime
from host.devices.operation import Operation
from host.devices.software import SoftwareProfile
from host.measurements.readings import h100_us
from host.model import MODELS
from host.systems.schedule import among_us
from host.timing.gpu import GpuProfile
from host.toml.profile import load_profile
from sim.experiments.checks.check import Check, Comparison, geometric_mean, percent

__all__ = ["comparison"]

_SAMPLES = (32, 128, 512, 2048)
_BESIDE = (1, 2, 4, 8)
_PROFILE = "gpu_h100"


def comparison() -> Comparison:
    """Return the geometric mean of each kind, and each kernel."""
    gpu = GpuTime(load_profile(_PROFILE, GpuProfile),
                  load_profile("software_tuned_h100", SoftwareProfile))
    kinds = {"MLPs": list(_mlps(gpu)), "MLPs side by side": list(_beside(gpu)),
             "lookups": list(_lookups(gpu)), "expanding kernels": list(_expanding(gpu))}
    every = [check for kind in kinds.values() for check in kind]
    means = [_mean(f"all {len(every)}", every), *(
        _mean(f"{len(each)} {kind}", each) for kind, each in kinds.items())]
    return Comparison.of(
        "H100 kernels", "Kernels of a DLRM on an H100", "H100, kernels",
        "The geometric mean of ours over theirs, reported without a bound, because the constants "
        "come from the same run: from a graph of empty kernels and from large products.",
        [*means, *every], _conclusion(gpu, means))


def _mlps(gpu: GpuTime) -> Iterator[Check]:
    """Yield Kaggle's MLPs: one kernel per layer with its activation, and one more for the top's
    output."""
    model = MODELS["kaggle"]
    for samples in _SAMPLES:
        for part, layers in (("bottom", model.bottom_layers), ("top", model.top_layers)):
            ours = _us(gpu, mlp(samples, layers, 1)) + (part == "top") * gpu.gpu.kernel_us
            yield _check(f"Kaggle's {part} MLP, {samples} samples", ours,
                         f"mlp.{part}.{samples}.fused_us", samples)


def _beside(gpu: GpuTime) -> Iterator[Check]:
    """Yield graphs with several top MLPs in parallel, as each MLP's share of the time."""
    layers = MODELS["kaggle"].top_layers
    for samples in (32, 128):
        work = mlp(samples, layers, 1)
        alone = _us(gpu, work) + gpu.gpu.kernel_us
        taken = gpu.run(*work).busy["gpu"]
        for count in _BESIDE[1:]:
            yield _check(f"{count} top MLPs of {samples} samples side by side, each",
                         among_us(alone, alone, (count - 1) * taken) / count,
                         f"branches.{count}.mlp.{samples}_us", samples)


def _lookups(gpu: GpuTime) -> Iterator[Check]:
    tables = MODELS["kaggle"].tables
    for samples in _SAMPLES:
        for dimension in (16, 64):
            keys = samples * tables
            yield _check(f"{samples} x {tables} keys, dimension {dimension}, one kernel",
                         _us(gpu, (gather(keys, keys, dimension, fused=True),)),
                         f"embedding.{samples}x{tables}x{4 * dimension}B.kernel.cold_us", samples)


def _expanding(gpu: GpuTime) -> Iterator[Check]:
    for name in ("kaggle", "terabyte"):
        for samples in _SAMPLES:
            slots = samples * MODELS[name].tables
            yield _check(f"{name}, {samples} samples expanded and interacted",
                         _us(gpu, expanded_interaction(samples, MODELS[name], slots, slots,
                                                       2 * slots, 2)),
                         f"expand.{name}.{samples}_us", samples)


def _us(gpu: GpuTime, work: Iterable[Operation]) -> float:
    return sum(gpu.work_us(each) for each in work)


def _check(name: str, ours: float, reading: str, samples: int) -> Check:
    return Check(name, ours, h100_us()[reading], "us", mini_batch=samples, profile=_PROFILE)


def _mean(name: str, checks: list[Check]) -> Check:
    return Check(f"{name}, geometric means", geometric_mean(each.ours for each in checks),
                 geometric_mean(each.theirs for each in checks), "us", profile=_PROFILE)


def _conclusion(gpu: GpuTime, means: list[Check]) -> str:
    found = h100_us()
    kinds = ", ".join(f"{each.name.split(' ', 1)[1].split(',')[0]} {percent(each.error)}"
                      for each in means[1:])
    resident = gpu.gpu.memory_bandwidth_gb_s * gpu.gpu.gather_fraction * 1e3 \
        / max(64, gpu.gpu.access_bytes) \
        * gpu.gpu.resident_multiprocessors / gpu.gpu.multiprocessors
    lists = 16384 / found["resident.4.16384_rows_us"]
    wait = found["held.1.in_order.first_us"] - found["release.poll_us"]
    load = found["resident.beside_mlp.load_us"] / found["resident.beside_mlp.load_alone_us"] - 1
    return (f"By kind {kinds}. A layer of few samples takes 7 us: a multiprocessor computes a "
            "whole tile over the whole inner dimension. From 512 samples, cuBLAS chooses other "
            "tiles. The expanding kernel multiplies on one multiprocessor per sample, below its "
            "peak. Parallel kernels disturb each other as mini-batches in flight do. "
            f"A resident kernel of {gpu.gpu.resident_multiprocessors} blocks gathers "
            f"{lists:.0f} rows of 64 B per microsecond from one list at a time; its share of "
            f"the memory's rate in the model is {resident:.0f}. A resident kernel of 16 blocks "
            f"changes the top MLP of 2,048 samples by {percent(load)}. A wait node of a graph "
            f"takes {wait:.1f} us longer than a kernel of one thread that polls. Waiting branches "
            "block all other work if they use all hardware connections of the process (8, or "
            "CUDA_DEVICE_MAX_CONNECTIONS); with 32 connections, eight waiting branches did not "
            "slow the load.")
