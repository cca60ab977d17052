"""Numerics of a run outside its NICs: in numpy or compiled, with the same bits."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from host.dlrm.dlrm import pooled_reference
from host.dlrm.mlp import Layer, linear_fixed
from host.model import Model
from host.samples import Samples
from sim.host_cpp.check import linear_compiled, pooled_compiled

__all__ = ["COMPILED", "NUMPY", "Numerics"]


@dataclass(frozen=True)
class Numerics:
    """Implementations of functions of :mod:`host.dlrm`; `NUMPY` is the reference."""

    linear: Callable[[np.ndarray, Layer], np.ndarray]
    pooled: Callable[[Samples, Model, int], np.ndarray]


NUMPY = Numerics(linear_fixed, pooled_reference)
"""The reference, which needs no compiler."""
COMPILED = Numerics(linear_compiled, pooled_compiled)
