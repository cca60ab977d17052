"""Compilation of CUDA kernels by NVRTC at run time, without a CUDA toolkit."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from embernic_extras import installation
from host.calibrate.reading import Missing

__all__ = ["compile_kernel", "kernel_sources", "supported_targets", "target_of"]


def _folder():
    return files("host.calibrate") / "kernels"


def kernel_sources() -> list[str]:
    """Return the names of the sources, without ``.cu``."""
    return sorted(file.name.removesuffix(".cu") for file in _folder().iterdir()
                  if file.name.endswith(".cu"))


def target_of(capability: int, supported: Sequence[int]) -> str:
    """Return NVRTC's target for a compute capability; 90 means 9.0.

    The target is machine code if NVRTC supports the GPU. For a newer GPU it is PTX of the latest
    supported capability, which the driver translates. Raises `Missing` for a GPU older than all
    targets.
    """
    if capability in supported:
        return f"sm_{capability}"
    older = [known for known in supported if known < capability]
    if not older:
        raise Missing(f"NVRTC does not support compute capability {capability / 10}")
    return f"compute_{max(older)}"


def supported_targets(nvrtc: Any) -> list[int]:
    """Return the compute capabilities that NVRTC supports; 90 means 9.0.

    nvrtc: the module ``cuda.bindings.nvrtc``. Raises `Missing` if its library is absent.
    """
    return list(_call(nvrtc, "nvrtcGetSupportedArchs"))


def compile_kernel(nvrtc: Any, source: str, target: str) -> bytes:
    """Compile ``source`` (see `kernel_sources`) to PTX or, for a target ``sm_...``, to machine
    code.

    Raises `Missing` with NVRTC's error message.
    """
    headers = [file for file in _folder().iterdir() if file.name.endswith(".cuh")]
    program = _call(nvrtc, "nvrtcCreateProgram", (_folder() / f"{source}.cu").read_bytes(),
                    f"{source}.cu".encode(), len(headers), [h.read_bytes() for h in headers],
                    [h.name.encode() for h in headers])
    options = [f"--gpu-architecture={target}".encode(), b"--std=c++17"]
    try:
        _call(nvrtc, "nvrtcCompileProgram", program, len(options), options)
    except Missing:
        log = b" " * _call(nvrtc, "nvrtcGetProgramLogSize", program)
        _call(nvrtc, "nvrtcGetProgramLog", program, log)
        said = " ".join(log.decode(errors="replace").strip("\0").split())
        raise Missing(f"{source}.cu does not compile for {target}: {said[:300]}") from None
    kind = "CUBIN" if target.startswith("sm_") else "PTX"
    code = b" " * _call(nvrtc, f"nvrtcGet{kind}Size", program)
    _call(nvrtc, f"nvrtcGet{kind}", program, code)
    _call(nvrtc, "nvrtcDestroyProgram", program)
    return code


def _call(nvrtc: Any, function: str, *arguments: Any) -> Any:
    try:
        status, *result = getattr(nvrtc, function)(*arguments)
    except Exception as error:  # the library is absent: each version has its own exception
        raise Missing(f"NVRTC cannot be used: {' '.join(str(error).split())}: "
                      f"{installation('calibrate')}") from None
    if int(status):
        raise Missing(f"{function} failed: {status.name}")
    return result[0] if result else None
