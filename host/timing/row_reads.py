"""Timing model of a NIC that reads rows from GPU memory over PCIe: requests, tags, completions."""

from collections import deque

from host.timing.clock import Link
from host.timing.pcie import Pcie, PcieProfile

__all__ = ["MOST_ANSWERED", "MOST_ASKED", "RowReadTimes", "answer_bytes"]

MOST_ASKED, MOST_ANSWERED = 512, 256
"""Most bytes of a read, and of a completion: usual sizes of PCIe 3.0 (largest read request, and the
payload that a Quadro RTX 8000 takes)."""


def answer_bytes(profile: PcieProfile, row_bytes: int) -> int:
    """Return the bytes on a link of a row and its completions."""
    return row_bytes + profile.completion_bytes * -(-row_bytes // MOST_ANSWERED)


class RowReadTimes:
    """Times at which rows leave GPU memory for the NIC that reads them, and their PCIe bytes.

    A read is a request on the link from the NIC and holds a tag until its data return. Data are
    completions on the link to the NIC. The NIC's own packets already account for a part of these
    bytes.

    Parameters: ``profile``; ``pcie`` of the NIC; ``row_bytes``.

    ``sim/host_cpp/row_reads.h`` implements the same model in C++.
    """

    def __init__(self, profile: PcieProfile, pcie: Pcie, row_bytes: int):
        self.reads = -(-row_bytes // MOST_ASKED)
        self.request_bytes = self.reads * profile.request_bytes
        self.answer_bytes = answer_bytes(profile, row_bytes)
        self._tags, self._round_trip = profile.read_tags, pcie.lookahead
        self._link = Link(profile.bandwidth_gb_s)
        self._back: deque[tuple[float, int]] = deque()
        self._held = 0

    def asked(self, rows: int, packet_bytes: int) -> int:
        """Return the bytes of requests for ``rows`` beyond the bytes of their packet."""
        return max(0, rows * self.request_bytes - packet_bytes)

    def answered(self, rows: int, packet_bytes: int) -> int:
        """Return the bytes of completions with ``rows`` beyond the bytes of their packet."""
        return max(0, rows * self.answer_bytes - packet_bytes)

    def take(self, now: float, rows: int, packet_bytes: int) -> float:
        """Request ``rows`` of a packet that has crossed PCIe at ``now``.

        Return the time at which the last request is across, and its row leaves GPU memory.
        """
        reads = rows * self.reads
        while self._back and self._held + reads > self._tags:
            back, count = self._back.popleft()
            self._held -= count
            now = max(now, back)
        leaves = self._link.send(now, self.asked(rows, packet_bytes))[1]
        # Assumes that the link to the NIC is free.
        self._held += reads
        self._back.append((leaves + self._round_trip
                           + rows * self.answer_bytes * self._link.cycles_per_byte, reads))
        return leaves
