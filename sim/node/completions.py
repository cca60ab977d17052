"""Completions of steps: a host opens a step at its NIC, and the NIC writes a word at its end."""

import numpy as np

from host.wire.completions import flushed_packet, parse_completion, step_open_packet
from host.wire.packets import Header
from sim.job.settings import COMPLETION_BASE
from sim.node.errors import COUNT, ProtocolError
from sim.node.step import Step

__all__ = ["Completions"]

_LAPS, _WORD_BYTES = 256, 4


class Completions:
    """The ring of completions of one NIC in GPU memory.

    Steps get slots in the order in which they start. Slots are returned in the same order, each
    after the host has seen the word of its step: the NIC ignores a count that includes a slot that
    it has yet to write. A step that ends before an older step keeps its slot until the older step
    has ended.

    Parameters: ``node``, its number; ``slots`` of the ring.

    ``sim/host_cpp/completions.h`` does the same in C++.
    """

    def __init__(self, node: int, slots: int):
        self._node, self._slots = node, slots
        self._reserved = self._opened = self._returned = 0
        self._numbers: dict[int, int] = {}
        self._open: dict[int, Step] = {}
        self._seen: set[int] = set()

    def reserve(self) -> bool:
        """Reserve a slot for the next step that starts; return False if none is free."""
        if self._reserved - self._returned == self._slots:
            return False
        self._reserved += 1
        return True

    def open(self, step: Step) -> np.ndarray:
        """Open ``step``, for which a slot is reserved, and return the packet for the NIC."""
        self._numbers[step.number] = self._opened
        self._open[step.number & 0xFFFF] = step
        self._opened += 1
        return step_open_packet(step.number, int(step.left[self._node]) + step.unique,
                                self._returned, node=self._node)

    def flushed(self, packet: np.ndarray, head: Header) -> np.ndarray:
        """Return the answer to a FLUSH packet: all earlier data are in GPU memory."""
        self._check(packet, head)
        return flushed_packet(packet, node=self._node, step=head.step)

    def take(self, packet: np.ndarray, head: Header) -> tuple[Step, int]:
        """Return the step that a COMPLETION packet ends, and its status.

        :class:`ProtocolError` unless the step is open and the word has the lap and slot of the
        step.
        """
        self._check(packet, head)
        word = parse_completion(packet)
        step = self._open.pop(word.step, None)
        if step is None:
            raise ProtocolError(f"node {self._node} completed step {word.step}, which is not open")
        lap, slot = divmod(self._numbers[step.number], self._slots)
        expected = slot, (lap + 1) % _LAPS, COMPLETION_BASE + _WORD_BYTES * slot
        if (found := (word.slot, word.lap, word.address)) != expected:
            places = ["slot {} of lap {} at {:#x}".format(*place) for place in (found, expected)]
            raise ProtocolError(f"node {self._node} completed step {word.step} in {places[0]}, not "
                                f"in {places[1]}")
        return step, word.status

    def seen(self, step: Step) -> None:
        """Return the slot of ``step`` after the host has seen its word."""
        self._seen.add(self._numbers.pop(step.number))
        while self._returned in self._seen:
            self._seen.remove(self._returned)
            self._returned += 1

    def _check(self, packet: np.ndarray, head: Header) -> None:
        if head.count != 1 or len(packet) != 2:
            raise ProtocolError(f"node {self._node} {COUNT.format(head.opcode)}")
