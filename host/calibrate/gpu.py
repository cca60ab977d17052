"""This machine's GPU: its profiles by PyTorch, and operators to check the models with."""

import re
from collections.abc import Callable
from time import perf_counter
from typing import Any

from host.calibrate.check import Check
from host.calibrate.readings import profiles
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
    """Return PyTorch, where it has the ``device``.

    ``ValueError`` where it is not installed, where it sees no CUDA device, and for a device that is
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
    """Return ``gpu_`` and what the device calls itself, in small letters and underscores."""
    said = torch.cuda.get_device_name() if device == "cuda" else "none"
    return "gpu_" + re.sub(r"\W+", "_", said.lower()).strip("_")


def measure_gpu(torch: Any, name: str, device: str = "cuda", repeats: int = 7,
                sizes: Sizes | None = None, samples: tuple[int, ...] = _SAMPLES,
                clock: Callable[[], float] = perf_counter,
                progress: Callable[[str], object] = lambda line: None
                ) -> tuple[Profiles, list[Check]]:
    """Measure a GPU, and the operators of Kaggle's model beside what the profiles say of them.

    A check calls an operator and waits for it, with what both cost; the model is that of an eager
    framework. ``progress`` is called with the name of what is measured.
    """
    with torch.no_grad():
        bench = TorchBench(torch, device, repeats, clock)
        progress("rates and calls")
        found = profiles(name, bench.readings(sizes or Sizes()))
        gpu = GpuTime(found[0], found[2])
        checks = []
        for count in samples:
            for what, operations, action in bench.cases(MODELS["kaggle"], count):
                progress(what)
                cost = gpu.run(*operations) + gpu.synchronize()
                checks.append(Check(what, cost.us, bench.us(action)))
    return found, checks
