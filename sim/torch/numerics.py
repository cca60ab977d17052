"""Floating-point settings of the NICs' numerics, independent of the program's settings."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

__all__ = ["own_numerics"]


@contextmanager
def own_numerics() -> Iterator[None]:
    """Compute with subnormals, infinities and NaN, as NICs do; also a decorator.

    The program may have changed both for this thread: ``torch.set_flush_denormal`` flushes
    subnormals in numpy and C++ too, and ``numpy.seterr`` may raise errors.
    """
    with np.errstate(all="ignore"):
        flushed = float(np.float32(1e-45) * np.float32(1)) == 0
        if flushed:
            torch.set_flush_denormal(False)
        try:
            yield
        finally:
            if flushed:
                torch.set_flush_denormal(True)
