"""Queries of a host: steps take turns, packets leave as the NIC's credits allow."""

from collections import deque
from collections.abc import Callable

import numpy as np

from host.wire.packets import query_packets
from rtl.config import NicConfig
from sim.node.step import Step

__all__ = ["Queries", "newly_consumed"]


def newly_consumed(credit: int, known: int) -> int:
    """Return the increase over ``known`` that a credit modulo 2^16 reports.

    It is 0 for an old credit. A packet gets its credit before it is queued with other packets: a
    newer credit may overtake it.
    """
    ahead = (credit - known) & 0xFFFF
    return ahead if ahead < 1 << 15 else 0


class Queries:
    """Queue of a host's queries to its NIC.

    Parameters
    ----------
    node: number of the host's node.
    config: the NIC's configuration.
    in_flight: steps kept in flight.
    send: function that sends a packet at a given time.
    began: callback, called before the first query of a step is sent, or when a step without
        queries starts.
    reserve: callback, called before a step with queries starts. If it returns False, the step waits
        until an earlier step ends.
    """

    def __init__(self, node: int, config: NicConfig, in_flight: int,
                 send: Callable[[np.ndarray, float], None], began: Callable[[Step, float], None],
                 reserve: Callable[[], bool] = lambda: True):
        self._node, self._in_flight = node, in_flight
        self._send, self._began, self._reserve = send, began, reserve
        self._buffer_beats = config.query_beats
        # The NIC reports credits when a quarter of the buffer has become free, at the latest.
        self._packet_beats = min(config.host_payload_beats, config.query_beats // 2)
        self._steps: deque[Step] = deque()
        self._packets: deque[tuple[Step, np.ndarray]] = deque()
        self._going = 0
        self._sent_beats = self._consumed_beats = 0

    @property
    def waiting(self) -> int:
        """Packets held back for lack of credit."""
        return len(self._packets)

    @property
    def left(self) -> bool:
        """Whether any query is left to send."""
        return bool(self._packets or self._steps)

    def add(self, step: Step, now: float) -> None:
        """Queue the node's share of ``step``."""
        self._steps.append(step)
        self._start(now)

    def ended(self, now: float) -> None:
        """Start the next step in place of an answered step."""
        self._going -= 1
        self._start(now)

    def consumed(self, credit: int) -> bool:
        """Record the beats of queries that the NIC has taken out of its buffer; return whether the
        number has increased.

        ``credit``: the number since the start, modulo 2^16.
        """
        more = newly_consumed(credit, self._consumed_beats)
        self._consumed_beats += more
        return more > 0

    def send(self, now: float) -> None:
        """Send the packets that fit the NIC's buffer."""
        while self._packets:
            step, packet = self._packets[0]
            beats = len(packet) - 1
            if self._sent_beats + beats - self._consumed_beats > self._buffer_beats:
                return
            self._packets.popleft()
            self._sent_beats += beats
            self._begin(step, now)
            self._send(packet, now)

    def _begin(self, step: Step, now: float) -> None:
        if self._node not in step.starts:
            step.starts[self._node] = now
            self._began(step, now)

    def _start(self, now: float) -> None:
        while self._steps and self._going < self._in_flight and (
                not self._steps[0].sends(self._node) or self._reserve()):
            step = self._steps.popleft()
            self._going += 1
            if not step.sends(self._node):
                self._begin(step, now)
                continue
            self._packets.extend((step, packet) for packet in query_packets(
                step.queries(self._node), node=self._node, step=step.number,
                payload_beats=self._packet_beats, items=step.items(self._node)))
        self.send(now)
