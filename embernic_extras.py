"""Optional packages, their extras, and the message about a missing package.

``gen``, ``host`` and ``sim`` import an optional package with :func:`require` only.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

__all__ = ["PACKAGES", "ExtraError", "installation", "main", "require"]

PACKAGES = {
    "cocotb": ("cocotb", "cosim"),
    "cocotbext.axi": ("cocotbext-axi", "cosim"),
    "cuda.bindings.driver": ("cuda-bindings", "calibrate"),
    "cuda.bindings.nvrtc": ("cuda-bindings", "calibrate"),
    "distributed": ("Dask's distributed", "dask"),
    "fbgemm_gpu": ("FBGEMM", "torchrec"),
    "pandas": ("pandas", "pandas"),
    "pythondata_cpu_picorv32": ("pythondata-cpu-picorv32", "timing-checks"),
    "pythondata_cpu_vexriscv": ("pythondata-cpu-vexriscv", "timing-checks"),
    "torch": ("PyTorch", "torch"),
    "torchrec": ("TorchRec", "torchrec"),
}
"""Name and extra of each optional module."""

_BESIDE = {"torchrec": "pip install --no-deps torchrec==1.8.0"}
"""Additional command for an extra: TorchRec requires FBGEMM's build for CUDA otherwise."""


class ExtraError(ImportError):
    """An optional package is not installed, or its import fails; ``str`` is one line.

    name: name of the module.
    """


def installation(extra: str) -> str:
    """Return the instruction for the installation of ``extra``."""
    commands = [f"pip install --editable '.[{extra}]'", *filter(None, [_BESIDE.get(extra)])]
    return f"install the extra in the repository with {' and '.join(commands)}"


def require(module: str, by: str) -> ModuleType:
    """Import and return an optional module.

    Parameters
    ----------
    module: one of :data:`PACKAGES`.
    by: name of the command or function that requires it, for the message.

    Raises :class:`ExtraError` if the module is not installed, or if its import fails.
    """
    title, extra = PACKAGES[module]
    try:
        if _installed(module):
            return import_module(module)
    except Exception as error:  # an import may run and raise anything
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ExtraError(f"{by} requires {title}, but its import fails ({reason[:300]}): "
                         f"{installation(extra)}", name=module) from error
    raise ExtraError(f"{by} requires {title}: {installation(extra)}", name=module)


def _installed(module: str) -> bool:
    if sys.modules.get(module) is not None:
        return True
    parent, _, _ = module.rpartition(".")
    return (not parent or _installed(parent)) and find_spec(module) is not None


def main() -> int:
    """Import every optional package; print a line for each missing package, and return 1."""
    missing = 0
    for module in PACKAGES:
        try:
            require(module, module)
        except ExtraError as error:
            print(error, file=sys.stderr)
            missing = 1
    return missing


if __name__ == "__main__":
    sys.exit(main())
