"""A compiled thread pool that advances compiled nodes. Reference: :mod:`sim.cluster.crew`."""

import ctypes
from collections.abc import Sequence
from contextlib import AbstractContextManager
from ctypes import c_bool, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from sim.engines.library import library
from sim.native.host import NativeNode
from sim.nic.timed import TIMED

__all__ = ["CompiledCrew", "crew_functions"]

_FUNCTIONS = {
    "ember_crew_new": (c_void_p, [c_uint64, c_uint64]),
    "ember_crew_free": (None, [c_void_p]),
    "ember_crew_add": (None, [c_void_p, c_void_p, c_void_p]),
    "ember_crew_advance": (None, [c_void_p, c_uint64, c_bool, c_void_p]),
}


@cache
def crew_functions() -> SimpleNamespace:
    """Return the functions of a crew.

    ``BuildError`` when the C++ compiler fails; the first call compiles where nothing is cached.
    """
    return library(Path(__file__).with_suffix(".cpp"), _FUNCTIONS,
                   long=("ember_crew_advance",))


class CompiledCrew(AbstractContextManager):
    """A thread pool for nodes that needs no Python. Reference: :class:`sim.cluster.crew.Crew`.

    Parameters: the nodes, all at the same cycle; ``threads``, the caller's included. With several
    threads a node runs a quantum in a few parts, not always on the same thread; its results do not
    depend on that.
    """

    def __init__(self, nodes: Sequence[NativeNode], threads: int):
        self._lib = crew_functions()
        self._nodes, self._threads = nodes, threads
        self._quanta = 0
        self._counts = (c_uint64 * len(nodes))()
        self._crew: int | None = None

    def __enter__(self) -> "CompiledCrew":
        self._crew = self._lib.ember_crew_new(self._threads, self._nodes[0].engine.cycle)
        if self._crew is None:
            raise OSError(f"threads must be fewer: {self._threads} cannot be started")
        for node in self._nodes:
            self._lib.ember_crew_add(self._crew, *node.native)
        return self

    def __exit__(self, *_) -> None:
        crew, self._crew = self._crew, None
        self._lib.ember_crew_free(crew)

    def advance(self, end: int) -> None:
        """Run every NIC and its host up to cycle ``end``; raise the first node's error, if any."""
        self._quanta += 1
        self._lib.ember_crew_advance(self._crew, end, self._quanta % TIMED == 0,
                                     ctypes.addressof(self._counts))
        for node, count in zip(self._nodes, self._counts):
            if count:
                node.take(count)
