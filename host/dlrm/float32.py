"""Float32 arithmetic in numpy as in the hardware: every computed NaN is 0x7FC00000."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

__all__ = ["NAN", "canonical", "means", "quiet"]

NAN = np.uint32(0x7FC00000).view(np.float32)
"""The NaN of the hardware. A CPU may return 0xFFC00000 or keep the payload of an operand."""


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress numpy's warnings of overflow and NaN; also a decorator."""
    with np.errstate(over="ignore", invalid="ignore"):
        yield


def canonical(values: np.ndarray) -> np.ndarray:
    """Return float32 ``values`` with every NaN as 0x7FC00000; ``values`` itself without NaN."""
    found = np.isnan(values)
    return np.where(found, NAN, values) if found.any() else values


@quiet()
def means(sums: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return ``sums [n, d]`` divided by float32 of ``lengths [n]``, by 1 for a length of 0."""
    return canonical(sums / np.maximum(lengths, 1).astype(np.float32)[:, None])
