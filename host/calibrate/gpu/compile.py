"""CUDA kernels from their sources, by NVRTC, when they are needed: no toolkit, no compiler."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from host.calibrate.reading import Missing

__all__ = ["compile_kernel", "kernel_sources", "target_of"]


def _folder():
    return files("host.calibrate") / "kernels"


def kernel_sources() -> list[str]:
    """Return the names of the sources, without ``.cu``."""
    return sorted(file.name.removesuffix(".cu") for file in _folder().iterdir()
                  if file.name.endswith(".cu"))


def target_of(capability: int, supported: Sequence[int]) -> str:
    """Return NVRTC's name for what to compile for: 90 is compute capability 9.0.

    Machine code where NVRTC knows the GPU. For a newer one, code of the latest kind that it knows,
    which the driver translates. Raises `Missing` for a GPU older than all.
    """
    if capability in supported:
        return f"sm_{capability}"
    older = [known for known in supported if known < capability]
    if not older:
        raise Missing(f"NVRTC has no compute capability {capability / 10}")
    return f"compute_{max(older)}"


def compile_kernel(nvrtc: Any, source: str, target: str) -> bytes:
    """Compile ``source`` (see `kernel_sources`) to PTX or, for ``sm_``, to machine code.

    ``nvrtc``: the module ``cuda.bindings.nvrtc``. Raises `Missing` with what NVRTC complains of.
    """

    def call(function: str, *arguments: Any) -> Any:
        try:
            status, *result = getattr(nvrtc, function)(*arguments)
        except Exception as error:  # the library is absent: each version has its own exception
            raise Missing(f"NVRTC cannot be used: {' '.join(str(error).split())}") from None
        if int(status):
            raise Missing(f"{function} of {source}.cu failed: {status.name}")
        return result[0] if result else None

    headers = [file for file in _folder().iterdir() if file.name.endswith(".cuh")]
    program = call("nvrtcCreateProgram", (_folder() / f"{source}.cu").read_bytes(),
                   f"{source}.cu".encode(), len(headers), [h.read_bytes() for h in headers],
                   [h.name.encode() for h in headers])
    options = [f"--gpu-architecture={target}".encode(), b"--std=c++17"]
    status, = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(status):
        log = b" " * call("nvrtcGetProgramLogSize", program)
        call("nvrtcGetProgramLog", program, log)
        raise Missing(f"{source}.cu does not compile for {target}: "
                      f"{' '.join(log.decode(errors='replace').strip(chr(0)).split())[:300]}")
    kind = "CUBIN" if target.startswith("sm_") else "PTX"
    code = b" " * call(f"nvrtcGet{kind}Size", program)
    call(f"nvrtcGet{kind}", program, code)
    nvrtc.nvrtcDestroyProgram(program)
    return code
