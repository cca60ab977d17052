"""Elaboration without Python's cyclic garbage collector, to halve its time."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collect_later"]


@contextmanager
def collect_later() -> Iterator[None]:
    """Disable garbage collection until the end of the block; blocks nest.

    Amaranth creates millions of long-lived objects, and each collection scans all of them.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
