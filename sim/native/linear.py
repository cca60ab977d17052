"""The linear layers of ``--mlp fixed``, compiled: the bits of numpy, a tenth of the time."""

from ctypes import c_uint64, c_void_p
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from host.dlrm.mlp import Layer
from sim.engines.library import library

__all__ = ["linear_compiled"]

_FUNCTIONS = {"ember_linear": (None, [c_void_p, c_uint64, c_uint64, c_void_p, c_uint64, c_void_p,
                                      c_void_p])}


@cache
def _library() -> SimpleNamespace:
    return library(Path(__file__).with_suffix(".cpp"), _FUNCTIONS, long=_FUNCTIONS)


def linear_compiled(inputs: np.ndarray, layer: Layer) -> np.ndarray:
    """Return what :func:`host.dlrm.mlp.linear_fixed` returns: float32 ``[n, outputs]``.

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
