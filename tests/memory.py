"""A bound on the memory of this process."""

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

__all__ = ["memory_bounded"]


@contextlib.contextmanager
def memory_bounded(more: int) -> Iterator[None]:
    """Bound the address space in the block: ``more`` bytes beyond those in use."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
