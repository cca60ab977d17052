"""The linear layers of ``--mlp fixed``, compiled: the bits of numpy, a tenth of the time."""

import ctypes
from functools import cache
from pathlib import Path

import numpy as np

from host.mlp import Layer
from sim.engines.cache import cached, digest
from sim.engines.toolchain import CXX_FLAGS, compile_files, compiler_id, link

__all__ = ["linear_compiled"]

_SOURCE = Path(__file__).parent / "linear.cpp"
_FLAGS = ("-ffp-contract=off",)


def linear_compiled(inputs: np.ndarray, layer: Layer) -> np.ndarray:
    """Return what :func:`host.mlp.linear_fixed` returns: float32 ``[n, outputs]``.

    ``BuildError`` when the C++ compiler fails; the first call compiles where nothing is cached.
    """
    inputs, weights, biases = (np.ascontiguousarray(array, np.float32)
                               for array in (inputs, layer.weights, layer.biases))
    (count, depth), width = inputs.shape, weights.shape[1]
    if weights.shape[0] != depth or biases.shape != (width,):
        raise ValueError(f"weights must be [{depth}, outputs] with as many biases, not "
                         f"{weights.shape!r} and {biases.shape!r}")
    result = np.empty((count, width), np.float32)
    _library().ember_linear(inputs.ctypes.data, count, depth, weights.ctypes.data, width,
                            biases.ctypes.data, result.ctypes.data)
    return result


@cache
def _library() -> ctypes.CDLL:
    key = digest(["linear", _SOURCE.read_text(encoding="utf-8"), compiler_id(), *CXX_FLAGS,
                  *_FLAGS])

    def build(folder: Path) -> None:
        link(compile_files([_SOURCE], folder, _FLAGS, []), folder / "linear.so")

    library = ctypes.CDLL(str(cached(f"linear-{key}", build) / "linear.so"))
    pointer, count = ctypes.c_void_p, ctypes.c_uint64
    library.ember_linear.argtypes = [pointer, count, count, pointer, count, pointer, pointer]
    library.ember_linear.restype = None
    return library
