"""Interface of a cluster's frame exchange, which exists in Python and in C++."""

from collections.abc import Sequence
from typing import Protocol

from sim.nic.ports import Observer

__all__ = ["FrameExchange"]


class FrameExchange(Protocol):
    """Carries frames from NIC to NIC over the network; counts ``frames`` taken,
    their ``frame_bytes``, and ``lost_frames``, addressed to a node that does not exist."""

    @property
    def frames(self) -> int: ...
    @property
    def frame_bytes(self) -> int: ...
    @property
    def lost_frames(self) -> int: ...

    def step(self, now: int, observer: Observer | None = None) -> None:
        """Deliver the frames completed since the last call; every engine is at cycle ``now``.

        ``RuntimeError`` when a beat would reach a NIC in a cycle that has passed.
        """
        ...

    def count_opcodes(self, opcodes: Sequence[int]) -> None:
        """From now on, also count the frames of each of ``opcodes`` separately."""
        ...

    def opcode_counts(self, opcode: int, steps: int) -> tuple[int, int, list[int]]:
        """Return the frames and bytes of ``opcode``, and for each of the first ``steps`` steps the
        cycle in which its last frame left, 0 if there was none."""
        ...
