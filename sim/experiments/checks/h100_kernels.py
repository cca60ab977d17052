"""MLPs, lookups and EN's expanding kernel on an H100, whose constants were measured in that run."""

from collections.abc import Iterable, Iterator

from host.devices.dense_work import interaction, mlp
from host.devices.embedding_work import gather
from host.devices.gpu_time import GpuTime
from host.devices.operation import Operation
from host.devices.software import SoftwareProfile
from host.measurements.readings import h100_us
from host.model import MODELS
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
        "The geometric mean of ours over theirs, reported without a bound: constants come from "
        "other readings of the same run, such as a graph of empty kernels and large products.",
        [*means, *every], _conclusion(gpu, means))


def _mlps(gpu: GpuTime) -> Iterator[Check]:
    """Yield Kaggle's MLPs, a kernel a layer with its activation; the top ends in one more."""
    model = MODELS["kaggle"]
    for samples in _SAMPLES:
        for part, layers in (("bottom", model.bottom_layers), ("top", model.top_layers)):
            ours = _us(gpu, mlp(samples, layers, 1)) + (part == "top") * gpu.gpu.kernel_us
            yield _check(f"Kaggle's {part} MLP, {samples} samples", ours,
                         f"mlp.{part}.{samples}.fused_us", samples)


def _beside(gpu: GpuTime) -> Iterator[Check]:
    """Yield the top MLP in graphs that have several side by side, each MLP's share of the time.

    Ours is the least that the model of a GPU allows: no kernel waits for another mini-batch's.
    """
    layers = MODELS["kaggle"].top_layers
    for samples in (32, 128):
        work = mlp(samples, layers, 1)
        alone = _us(gpu, work) + gpu.gpu.kernel_us
        held = sum(gpu.share(each) * gpu.work_us(each) for each in work)
        for count in _BESIDE[1:]:
            yield _check(f"{count} top MLPs of {samples} samples side by side, each",
                         max(held, alone / count), f"branches.{count}.mlp.{samples}_us", samples)


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
            yield _check(f"{name}, {samples} samples expanded and interacted",
                         _us(gpu, interaction(samples, MODELS[name], 2)),
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
    resident = gpu.gpu.memory_bandwidth_gb_s * gpu.gpu.gather_fraction * 1e3 / 64 \
        * gpu.gpu.resident_multiprocessors / gpu.gpu.multiprocessors
    lists = 16384 / found["resident.4.16384_rows_us"]
    wait = found["held.1.in_order.first_us"] - found["release.poll_us"]
    load = found["resident.beside_mlp.load_us"] / found["resident.beside_mlp.load_alone_us"] - 1
    return (f"By kind {kinds}. The constant for short kernels, {gpu.gpu.kernel_us:g} us, is that "
            "of a graph of empty ones: one that has something to read and to compute takes 3 us "
            "and more, a layer of few samples 7, since its tiles walk through the whole inner "
            "dimension one after the other. Side by side that is hidden in part: ours is what the "
            f"kernels fill of the GPU, theirs with {_BESIDE[-1]} in a graph two to four times as "
            f"much. A resident kernel of {gpu.gpu.resident_multiprocessors} blocks gathers "
            f"{lists:.0f} rows of 64 B a microsecond from one list at a time; its share of the "
            f"memory's rate, as the model has it, is {resident:.0f}. One of 16 blocks makes the "
            f"top MLP of 2,048 samples take {percent(load)}. A graph's node that waits for a word "
            f"takes {wait:.1f} us longer than a kernel of one thread that polls. Branches that "
            "wait hold everything else once they are as many as the process has hardware "
            "connections (8 unless CUDA_DEVICE_MAX_CONNECTIONS says otherwise); with 32, eight "
            "that wait took nothing of a load.")
