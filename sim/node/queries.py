"""Queries of a host: mini-batches in their turn, packets as the NIC's credits allow."""

from collections import deque
from collections.abc import Callable

import numpy as np

from host.wire.packets import query_packets
from rtl.config import NicConfig
from sim.node.step import Step

__all__ = ["Queries", "newly_consumed"]


def newly_consumed(credit: int, known: int) -> int:
    """Return how much more than ``known`` a credit modulo 2^16 tells of.

    A packet takes its credit before it gets in line with others, so a newer one may leave before
    it: then nothing.
    """
    ahead = (credit - known) & 0xFFFF
    return ahead if ahead < 1 << 15 else 0


class Queries:
    """What a host still has to ask its NIC for.

    Parameters
    ----------
    node: number of the host's node.
    config: the NIC's configuration.
    in_flight: steps that are kept going at once.
    send: sends a packet at a time.
    began: is told when the first query of a step is sent.
    """

    def __init__(self, node: int, config: NicConfig, in_flight: int,
                 send: Callable[[np.ndarray, float], None], began: Callable[[Step, float], None]):
        self._node, self._in_flight = node, in_flight
        self._send, self._began = send, began
        self._buffer_beats = config.query_beats
        # The NIC reports credits at the latest when a quarter of the buffer is free.
        self._packet_beats = min(config.host_payload_beats, config.query_beats // 2)
        self._steps: deque[Step] = deque()
        self._packets: deque[tuple[Step, np.ndarray]] = deque()
        self._going = 0
        self._sent_beats = self._consumed_beats = 0

    @property
    def waiting(self) -> int:
        """Packets that are held back for lack of credit."""
        return len(self._packets)

    @property
    def left(self) -> bool:
        """Whether anything is left to be asked for."""
        return bool(self._packets or self._steps)

    def add(self, step: Step, now: float) -> None:
        """Ask for the node's share of ``step`` when its turn comes."""
        self._steps.append(step)
        self._start(now)

    def ended(self, now: float) -> None:
        """Let the next step take the turn of one that is answered."""
        self._going -= 1
        self._start(now)

    def consumed(self, credit: int) -> None:
        """Take note of the beats of queries that the NIC has taken out of its buffer.

        ``credit``: how many since the start, modulo 2^16.
        """
        self._consumed_beats += newly_consumed(credit, self._consumed_beats)

    def send(self, now: float) -> None:
        """Send what there is room for in the NIC's buffer."""
        while self._packets:
            step, packet = self._packets[0]
            beats = len(packet) - 1
            if self._sent_beats + beats - self._consumed_beats > self._buffer_beats:
                return
            self._packets.popleft()
            self._sent_beats += beats
            if self._node not in step.starts:
                step.starts[self._node] = now
                self._began(step, now)
            self._send(packet, now)

    def _start(self, now: float) -> None:
        while self._steps and self._going < self._in_flight:
            step = self._steps.popleft()
            self._going += 1
            self._packets.extend((step, packet) for packet in query_packets(
                step.queries(self._node), node=self._node, step=step.number,
                payload_beats=self._packet_beats))
        self.send(now)
