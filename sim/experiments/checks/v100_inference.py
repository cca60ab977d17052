"""Inference of MLPerf's first DLRM on one V100 behind a server, by batch."""

from dataclasses import replace

from host.devices.dense_work import interaction, mlp
from host.devices.embedding_work import gather
from host.devices.gpu_time import GpuTime
from host.devices.software import SoftwareProfile
from host.measurements.published import Inference, inference
from host.model import TERABYTE_ROWS, Model
from host.timing.gpu import GpuProfile
from host.toml.profile import load_profile
from sim.experiments.checks.check import Check, Comparison, percent
from sim.experiments.checks.composed import even_plan, paper_step_us, work_of

__all__ = ["comparison"]

_BOUND = 0.25
_GPU = "gpu_v100"
_HALF, _BIG = 8192, 16384
"""Batch sizes with a fully busy GPU; used only for the cause of errors."""
_FLOAT16_TFLOPS = 125.0
"""Float16 products on a V100's tensor cores, data sheet; used only for the cause of errors."""


def comparison() -> Comparison:
    """Return the slope of the latency, the saturation, and the latency of each batch."""
    found = inference()
    model = Model(TERABYTE_ROWS[:found.tables], found.dimension, found.dense, found.bottom,
                  found.top)
    ours = {batch: _us(model, batch) for batch in found.batch}
    low, high = found.slope
    best = max(range(len(found.batch)), key=lambda index: found.float32_rate[index])
    batch = found.batch[best]
    checks = [
        Check(f"time of a further sample, batch {low:,} to {high:,}",
              (ours[high] - ours[low]) / (high - low) * 1e3,
              (found.ms(high) - found.ms(low)) / (high - low) * 1e6, "ns", _BOUND, 1, high, _GPU),
        Check("most samples a second", batch / ours[batch], found.float32_rate[best] / 1e6,
              "M/s", _BOUND, 1, batch, _GPU)]
    checks.append(Check(
        f"what float16 saves on a further sample, {_HALF:,} to {_BIG:,}", _saved_ns(model),
        _theirs_ns(found, False) - _theirs_ns(found, True), "ns", None, 1, _BIG, _GPU))
    checks += [Check(f"latency of a batch of {batch:,}", ours[batch] / 1e3, found.ms(batch), "ms",
                     None, 1, batch, _GPU) for batch in found.batch]
    return Comparison.of(
        "V100 inference", "Inference on one V100 behind Triton, float32", "V100 inference",
        "The slope, because the model has no server and a slope excludes the constant cost of a "
        "request; and the best rate, which is that of one request in flight. Eager operators, one "
        "lookup per table, like bl-paper on one node.",
        checks, _conclusion(model, found, checks))


def _us(model: Model, samples: int) -> float:
    hot = (1,) * model.tables
    return paper_step_us(work_of(model, even_plan(model, 1, hot), samples, hot), _GPU)


def _gpu_us(model: Model, samples: int, float16: bool = False) -> float:
    """Return the time of the GPU's kernels, without calls and copies."""
    profile = load_profile(_GPU, GpuProfile)
    if float16:
        profile = replace(profile, float32_tflops=_FLOAT16_TFLOPS)
    gpu = GpuTime(profile, load_profile("software_eager", SoftwareProfile))
    lookups = samples * model.tables
    work = (gather(lookups, lookups, model.dimension, model.tables),
            *mlp(samples, model.bottom_layers), *interaction(samples, model),
            *mlp(samples, model.top_layers))
    if float16:
        work = tuple(replace(each, streamed_bytes=each.streamed_bytes / 2,
                             row_bytes=each.row_bytes // 2) for each in work)
    return sum(gpu.work_us(each) for each in work)


def _theirs_ns(found: Inference, float16: bool) -> float:
    """Return their time of an additional sample of a large batch."""
    return (found.ms(_BIG, float16) - found.ms(_HALF, float16)) / (_BIG - _HALF) * 1e6


def _gpu_ns(model: Model, float16: bool) -> float:
    """Return our GPU's time of an additional sample of a large batch."""
    return (_gpu_us(model, _BIG, float16) - _gpu_us(model, _HALF, float16)) / (_BIG - _HALF) * 1e3


def _saved_ns(model: Model) -> float:
    return _gpu_ns(model, False) - _gpu_ns(model, True)


def _conclusion(model: Model, found: Inference, checks: list[Check]) -> str:
    good = sum(check.good is True for check in checks)
    left = _theirs_ns(found, False) - _gpu_ns(model, False)
    inputs = 4 * model.dense + 8 * model.tables
    return (f"{good} of 2 within the bound (slope {percent(checks[0].error)}, rate "
            f"{percent(checks[1].error)}). Cause: the same page has the model in float16, which "
            f"changes only the GPU's work. From {_HALF:,} to {_BIG:,} samples, an additional "
            f"sample takes {_theirs_ns(found, False):.0f} ns in float32 and "
            f"{_theirs_ns(found, True):.0f} in float16; our GPU works {_gpu_ns(model, False):.0f} "
            f"and {_gpu_ns(model, True):.0f} ns on it. The difference, which is the GPU's alone, "
            f"is {_theirs_ns(found, False) - _theirs_ns(found, True):.0f} ns for theirs and "
            f"{_saved_ns(model):.0f} for ours. The rest of theirs, {left:.0f} ns in float32 "
            f"and {_theirs_ns(found, True) - _gpu_ns(model, True):.0f} in float16, is outside "
            f"the GPU's kernels: {inputs} bytes of inputs per sample pass from the client through "
            f"gRPC and the server, {inputs / left:.2f} GB/s. Our requests start in host memory.")
