"""What a cluster asks of its exchange and its crew, each of which exists in Python and in C++."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from sim.nic.ports import Observer

__all__ = ["CrewOf", "FrameExchange", "NodesAdvance"]


class FrameExchange(Protocol):
    """Hands frames from NIC to NIC through the network; counts ``frames`` handed on,
    ``frame_bytes`` of them, and ``lost_frames``, those for a node that is not there."""

    @property
    def frames(self) -> int: ...
    @property
    def frame_bytes(self) -> int: ...
    @property
    def lost_frames(self) -> int: ...

    def step(self, now: int, observer: Observer | None = None) -> None:
        """Hand on the frames that were finished since the last call; every engine is at ``now``.

        ``RuntimeError`` when a beat would reach a NIC in a cycle that has passed.
        """
        ...

    def count_apart(self, opcodes: Sequence[int]) -> None:
        """Count the frames of each of ``opcodes`` separately from now on."""
        ...

    def counts_of(self, opcode: int, steps: int) -> tuple[int, int, list[int]]:
        """Return the counts of ``opcode``: frames, bytes, and for each of the first ``steps`` steps
        the cycle in which its last frame left, 0 for none."""
        ...


class NodesAdvance(Protocol):
    """Threads that advance the nodes of a cluster."""

    def advance(self, end: int) -> None:
        """Run every NIC and its host up to cycle ``end``; raises what one of them raises."""
        ...


CrewOf = Callable[[int], AbstractContextManager[NodesAdvance]]
"""Makes a crew of so many threads, the caller's included."""
