"""Float32 arithmetic in numpy as in the hardware: every computed NaN is 0x7FC00000."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

__all__ = ["NAN", "canonical", "fused", "means", "quiet"]

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
def fused(first: np.ndarray, second: np.ndarray, added: np.ndarray) -> np.ndarray:
    """Return ``first * second + added``, float32, rounded once, as a fused multiply-add does.

    The product is exact in float64. The sum is rounded to odd in float64, which makes the second
    rounding, to float32, the only one (Boldo and Melquiond, "Emulation of FMA and correctly rounded
    sums", 2008).
    """
    product, more = first.astype(np.float64) * second, added.astype(np.float64)
    total = product + more
    # The rounding error of the sum (Knuth's TwoSum), exact for finite numbers.
    share = total - product
    error = (product - (total - share)) + (more - share)
    bits = total.view(np.int64)
    even = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    bits[even] += np.where((error[even] > 0) == (total[even] > 0), 1, -1)
    return canonical(total.astype(np.float32))


@quiet()
def means(sums: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return ``sums [n, d]`` divided by float32 of ``lengths [n]``, by 1 for a length of 0."""
    return canonical(sums / np.maximum(lengths, 1).astype(np.float32)[:, None])
