"""Threads that advance nodes of which all is compiled."""

import ctypes
from collections.abc import Sequence
from contextlib import AbstractContextManager
from ctypes import c_bool, c_uint64, c_void_p
from pathlib import Path

from sim.engines.library import library
from sim.node_native import TIMED, NativeNode

__all__ = ["CompiledCrew"]

_FUNCTIONS = {
    "ember_crew_new": (c_void_p, [c_uint64, c_uint64]),
    "ember_crew_free": (None, [c_void_p]),
    "ember_crew_add": (None, [c_void_p, c_void_p, c_void_p]),
    "ember_crew_advance": (None, [c_void_p, c_uint64, c_bool, c_void_p]),
}


class CompiledCrew(AbstractContextManager):
    """What a :class:`sim.crew.Crew` of nodes is, Python kept out of it.

    ``BuildError`` when the C++ compiler fails; the first instance compiles where nothing is cached.

    Parameters: the nodes, all at one cycle; ``threads``, the caller's included. Where those are
    several, a node goes to its next cycle in a few steps, and not always with the same thread: that
    changes nothing for it.
    """

    def __init__(self, nodes: Sequence[NativeNode], threads: int):
        self._lib = library(Path(__file__).parent / "native" / "crew.cpp", _FUNCTIONS,
                            long=("ember_crew_advance",))
        self._nodes = nodes
        self._quanta = 0
        self._counts = (c_uint64 * len(nodes))()
        self._crew = self._lib.ember_crew_new(threads, nodes[0].engine.cycle)
        for node in nodes:
            self._lib.ember_crew_add(self._crew, *node.native)

    def __exit__(self, *_) -> None:
        self._lib.ember_crew_free(self._crew)

    def advance(self, end: int) -> None:
        """Run every NIC and its host up to cycle ``end``; raises what the first of them raises."""
        self._quanta += 1
        self._lib.ember_crew_advance(self._crew, end, self._quanta % TIMED == 0,
                                     ctypes.addressof(self._counts))
        for node, count in zip(self._nodes, self._counts):
            if count:
                node.take(count)
