"""Subnormals in the NICs' numerics, whatever the program does with its own."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

__all__ = ["with_subnormals"]


@contextmanager
def with_subnormals() -> Iterator[None]:
    """Compute with subnormals, as the NICs do; also a decorator.

    ``torch.set_flush_denormal`` makes the processor flush them in this thread, in numpy and C++
    too.
    """
    flushed = float(np.float32(1e-45) * np.float32(1)) == 0
    if flushed:
        torch.set_flush_denormal(False)
    try:
        yield
    finally:
        if flushed:
            torch.set_flush_denormal(True)
