"""The host port of a NIC: whole packets with their cycles, in both directions."""

from collections.abc import Sequence

import numpy as np

from rtl.formats import BEAT_BYTES
from sim.engines import Engine
from sim.nic.ports import DATA_WORDS, Packets, PacketTap, arrivals, late, with_framing

__all__ = ["HostPort"]


class HostPort:
    """Reads packets from a NIC's ``host_tx`` and writes packets to its ``host_rx``.

    Parameters
    ----------
    engine: the NIC. number: of its node, for messages.
    cycles_per_byte: of the link to the NIC. latency: its latency in cycles.
    """

    def __init__(self, engine: Engine, number: int, cycles_per_byte: float, latency: int):
        self._engine, self._number = engine, number
        self._per_beat, self._latency = BEAT_BYTES * cycles_per_byte, latency
        self._tap = PacketTap(engine, "host_tx")

    def take(self) -> Packets:
        """Return the packets completed since the last call, without framing: ``beats`` is uint32
        ``[n, 16]``."""
        beats, starts, ends, cycles = self._tap.take()
        return Packets(np.ascontiguousarray(beats[:, :DATA_WORDS]), starts, ends, cycles)

    def give(self, packets: Sequence[np.ndarray], starts: Sequence[float], now: int) -> None:
        """Deliver ``packets`` (uint32 ``[n, 16]``) to the NIC, which is at cycle ``now``.

        ``starts``: time at which the first byte of each packet leaves the host. ``RuntimeError`` if
        a beat would arrive in a past cycle.
        """
        lengths = list(map(len, packets))
        cycles = arrivals(starts, lengths, self._per_beat, self._latency)
        if int(cycles[0]) < now:
            raise late("host_rx", self._number, int(cycles[0]), now)
        self._engine.push("host_rx", with_framing(np.concatenate(packets), lengths), cycles)
