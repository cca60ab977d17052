"""Selection and description of the measured device."""

import platform
import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from embernic_extras import require
from host.calibrate.cpu import cores
from host.calibrate.gpu.device import Device

__all__ = ["default_name", "described", "find_device"]


def find_device(device: str) -> Any:
    """Return PyTorch if it supports ``device``.

    Raises ``ValueError`` if PyTorch sees no CUDA device, or if the device is neither ``cuda`` nor
    ``cpu``; :class:`embernic_extras.ExtraError` if PyTorch is not installed.
    """
    if device not in ("cuda", "cpu"):
        raise ValueError(f"device must be cuda or cpu, not {device!r}")
    torch: Any = require("torch", "host.calibrate gpu")
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("gpu requires a CUDA device, but PyTorch found no device")
    return torch


def default_name(torch: Any, device: str) -> str:
    """Return ``gpu_`` and the device's name in lower case, with underscores."""
    said = torch.cuda.get_device_name() if device == "cuda" else "none"
    return "gpu_" + re.sub(r"\W+", "_", said.lower()).strip("_")


def described(device: Device) -> dict[str, Any]:
    """Return names and versions of the measured machine."""
    torch = device.torch
    versions = getattr(torch, "version", None)
    try:
        own = version("embernic")
    except PackageNotFoundError:  # run from its folder
        own = None
    return {"version": own, "gpu": torch.cuda.get_device_name() if device.cuda else None,
            "torch": str(torch.__version__), "cuda": getattr(versions, "cuda", None),
            "processor": platform.processor() or platform.machine(), "cores": cores(),
            "repeats": device.repeats, "scale": device.sizes.scale}
