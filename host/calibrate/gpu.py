"""Calibration of this machine's GPU with PyTorch, and operators to check the models."""

import re
from collections.abc import Callable
from time import perf_counter
from typing import Any

from host.calibrate.check import Check
from host.calibrate.readings import derive_profiles
from host.calibrate.torch_bench import Sizes, TorchBench
from host.devices.gpu_time import GpuTime
from host.devices.software import SoftwareProfile
from host.model import MODELS
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile

__all__ = ["default_name", "find_device", "measure_gpu"]

_SAMPLES = (32, 128, 512, 2048)

Profiles = tuple[GpuProfile, PcieProfile, SoftwareProfile, SoftwareProfile]


def find_device(device: str) -> Any:
    """Return PyTorch if it supports ``device``.

    Raises ``ValueError`` if PyTorch is not installed or sees no CUDA device, or if the device is
    neither ``cuda`` nor ``cpu``.
    """
    if device not in ("cuda", "cpu"):
        raise ValueError(f"device must be cuda or cpu, not {device!r}")
    try:
        import torch
    except ImportError:
        raise ValueError("gpu needs PyTorch, which is not installed") from None
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("gpu needs a CUDA device, and PyTorch sees none")
    return torch


def default_name(torch: Any, device: str) -> str:
    """Return ``gpu_`` and the device's name in lower case, with underscores."""
    said = torch.cuda.get_device_name() if device == "cuda" else "none"
    return "gpu_" + re.sub(r"\W+", "_", said.lower()).strip("_")


def measure_gpu(torch: Any, name: str, device: str = "cuda", repeats: int = 7,
                sizes: Sizes | None = None, samples: tuple[int, ...] = _SAMPLES,
                clock: Callable[[], float] = perf_counter,
                progress: Callable[[str], object] = lambda line: None
                ) -> tuple[Profiles, list[Check]]:
    """Measure a GPU, and compare operators of Kaggle's model with the profiles' predictions.

    A check calls an operator and waits for it, and includes the cost of both; the model is that of
    an eager framework. ``progress`` is called with the name of each measurement.
    """
    with torch.no_grad():
        bench = TorchBench(torch, device, repeats, clock)
        progress("rates and calls")
        found = derive_profiles(name, bench.readings(sizes or Sizes()))
        gpu = GpuTime(found[0], found[2])
        checks = []
        for count in samples:
            for what, operations, action in bench.cases(MODELS["kaggle"], count):
                progress(what)
                cost = gpu.run(*operations) + gpu.synchronize()
                checks.append(Check(what, cost.us, bench.us(action)))
    return found, checks
