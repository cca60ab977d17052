"""Interface of a cluster's frame exchange, which exists in Python and in C++."""

from collections.abc import Sequence
from typing import Any, Protocol

from sim.job.frame_faults import FrameRule, Injected
from sim.nic.ports import Observer

__all__ = ["FrameExchange"]


class FrameExchange(Protocol):
    """Carries frames from NIC to NIC over the network.

    Members
    -------
    frames, frame_bytes: frames taken, and their bytes.
    lost_frames: frames addressed to a node that does not exist.
    full_frames: frames that a full queue dropped.
    released: frames forwarded after faults were applied.
    next_event: cycle in which the next late frame is forwarded; infinite if no frame waits.
    injected: frames by kind of fault, source, destination and opcode.
    """

    @property
    def frames(self) -> int: ...
    @property
    def frame_bytes(self) -> int: ...
    @property
    def lost_frames(self) -> int: ...
    @property
    def full_frames(self) -> int: ...
    @property
    def released(self) -> int: ...
    @property
    def next_event(self) -> float: ...
    @property
    def injected(self) -> Injected: ...

    def inject(self, rules: Sequence[FrameRule], seed: int) -> None:
        """Apply ``rules`` to all further frames, drawn with ``seed``."""
        ...

    def replace(self, number: int, engine: Any) -> None:
        """Put ``engine``, at the same cycle, in place of the NIC of node ``number``. The frame that
        the former NIC was sending is lost; late frames reach the new NIC."""
        ...

    def step(self, now: int, observer: Observer | None = None) -> None:
        """Deliver the frames completed since the last call; every engine is at cycle ``now``.

        ``RuntimeError`` if a beat would reach a NIC in a past cycle.
        """
        ...

    def count_opcodes(self, opcodes: Sequence[int]) -> None:
        """Count the further frames of each of ``opcodes`` separately, too."""
        ...

    def opcode_counts(self, opcode: int, steps: int) -> tuple[int, int, list[int]]:
        """Return the frames and bytes of ``opcode``, and for each of the first ``steps`` steps the
        cycle in which its last frame left, 0 without frames."""
        ...
