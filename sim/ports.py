"""Packets at the edges of the NIC as numpy arrays: beats of :data:`rtl.formats.Beat`."""

import numpy as np

from rtl.formats import Beat
from sim.engines import Engine

__all__ = ["BEAT_WORDS", "DATA_WORDS", "LAST_BIT", "PacketTap", "with_framing"]

DATA_WORDS = Beat.members["data"] // 32
BEAT_WORDS = -(-Beat.size // 32)
_KEEP = Beat["keep"].offset // 32
LAST_BIT = Beat["last"].offset
"""Bit of a beat that ends a packet."""


def with_framing(data: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
    """Return beats for an edge from packet data: uint32 ``[n, 16]`` to ``[n, BEAT_WORDS]``.

    ``lengths``: beats of each packet in ``data``, one after the other; default one packet.
    """
    beats = np.zeros((len(data), BEAT_WORDS), np.uint32)
    beats[:, :DATA_WORDS] = data
    beats[:, _KEEP:_KEEP + Beat.members["keep"] // 32] = 0xFFFFFFFF
    ends = np.cumsum([len(data)] if lengths is None else lengths) - 1
    beats[ends, LAST_BIT // 32] |= np.uint32(1 << LAST_BIT % 32)
    return beats


class PacketTap:
    """Takes whole packets from an output of an engine; a packet may span several quanta."""

    def __init__(self, engine: Engine, stream: str):
        self._engine = engine
        self._stream = stream
        self._rest: list[np.ndarray] = []

    def take(self) -> list[tuple[np.ndarray, int]]:
        """Return data (uint32 ``[n, 16]``) and cycle of the last beat of each finished packet."""
        beats, cycles = self._engine.pop(self._stream)
        ends = np.flatnonzero(beats[:, LAST_BIT // 32] >> (LAST_BIT % 32) & 1) + 1
        packets, start = [], 0
        for end in ends.tolist():
            part = beats[start:end, :DATA_WORDS]
            if self._rest:
                part = np.concatenate((*self._rest, part))
                self._rest = []
            packets.append((part, int(cycles[end - 1])))
            start = end
        if start < len(beats):
            self._rest.append(beats[start:, :DATA_WORDS])
        return packets
