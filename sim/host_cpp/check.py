"""Compiled numerics of the result check: linear layers of ``--mlp fixed`` and pooled vectors.

Reference: :func:`host.dlrm.mlp.linear_fixed`, :func:`host.dlrm.dlrm.pooled_reference`.

Gain: a run of 4 NICs in RTL is 1.6 times as fast as with the reference (``python -m sim bench
--only twins``).
"""

from ctypes import POINTER, byref, c_bool, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from host.dlrm.dlrm import pooled_reference
from host.dlrm.mlp import Layer
from host.model import Model
from host.samples import Samples
from sim.engines.library import library
from sim.host_cpp.formats import header_text
from sim.host_cpp.rows import rows_of
from sim.host_cpp.structures import Rows

__all__ = ["linear_compiled", "pooled_compiled"]

_FUNCTIONS = {
    "ember_linear": (None, [c_void_p, c_uint64, c_uint64, c_void_p, c_uint64, c_void_p, c_void_p]),
    "ember_pooled": (c_bool, [POINTER(Rows), c_void_p, c_void_p, c_void_p, c_uint64, c_bool,
                              c_void_p]),
}


@cache
def _library() -> SimpleNamespace:
    return library(Path(__file__).with_suffix(".cpp"), _FUNCTIONS, long=_FUNCTIONS,
                   generated={"formats.h": header_text()})


def linear_compiled(inputs: np.ndarray, layer: Layer) -> np.ndarray:
    """Return the result of :func:`host.dlrm.mlp.linear_fixed`: float32 ``[n, outputs]``.

    ``BuildError`` if the C++ compiler fails. The first call compiles unless the cache has the
    library.
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


def pooled_compiled(samples: Samples, model: Model, seed: int) -> np.ndarray:
    """Return the result of :func:`host.dlrm.dlrm.pooled_reference`, and raise its exceptions.

    The reference itself pools samples with weights.
    """
    if samples.weights is not None:
        return pooled_reference(samples, model, seed)
    tables, rows, lengths = (np.ascontiguousarray(array, np.int64) for array in (
        samples.tables, samples.rows, samples.bag_lengths))
    constants = rows_of(model, seed)
    pooled = np.empty((len(samples), samples.table_count, model.width), np.float32)
    if not _library().ember_pooled(
            byref(constants), tables.ctypes.data, rows.ctypes.data, lengths.ctypes.data,
            lengths.size, model.nic_pooling == "mean", pooled.ctypes.data):
        return pooled_reference(samples, model, seed)
    return pooled
