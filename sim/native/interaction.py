"""The interaction of features, compiled."""

from ctypes import c_bool, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from host.dlrm.interaction import concatenation
from host.model import Model
from sim.engines.library import library

__all__ = ["dot_interaction_compiled", "interaction_compiled"]

_FUNCTIONS = {"ember_dots": (None, [c_void_p, c_void_p, c_uint64, c_uint64, c_uint64, c_bool,
                                    c_void_p])}


@cache
def _library() -> SimpleNamespace:
    return library(Path(__file__).with_suffix(".cpp"), _FUNCTIONS, long=_FUNCTIONS)


def dot_interaction_compiled(dense: np.ndarray, pooled: np.ndarray, *,
                             itself: bool = False) -> np.ndarray:
    """Return what :func:`host.dlrm.interaction.dot_interaction` returns.

    ``ValueError`` when the shapes do not go together.
    """
    dense, pooled = (np.ascontiguousarray(array, np.float32) for array in (dense, pooled))
    (count, dimension), tables = dense.shape, pooled.shape[1]
    if pooled.shape != (count, tables, dimension):
        raise ValueError(f"pooled must be [{count}, tables, {dimension}], not shape "
                         f"{pooled.shape!r}")
    width = dimension + (tables + 1) * (tables + (2 if itself else 0)) // 2
    result = np.empty((count, width), np.float32)
    _library().ember_dots(dense.ctypes.data, pooled.ctypes.data, count, tables, dimension, itself,
                          result.ctypes.data)
    return result


def interaction_compiled(model: Model, dense: np.ndarray, pooled: np.ndarray) -> np.ndarray:
    """Return what :func:`host.dlrm.interaction.interaction` returns."""
    if model.interaction == "cat":
        return concatenation(dense, pooled)
    return dot_interaction_compiled(dense, pooled, itself=model.interaction_itself)
