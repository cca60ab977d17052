"""Packets at the NIC's ports, as numpy arrays of beats of :data:`rtl.formats.Beat`."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rtl.formats import Beat
from sim.engines import Engine

__all__ = ["BEAT_WORDS", "DATA_WORDS", "KEEP_WORDS", "LAST_BIT", "Observer", "PacketTap", "Packets",
           "arrivals", "late", "with_framing"]

Observer = Callable[[list[tuple[int, int, np.ndarray]]], None]
"""Observer of frames, called after each quantum with the frames that left a NIC in it, in time
order: the cycle of the last beat, the number of the sender, the frame as uint32 ``[n, 16]``."""

DATA_WORDS = Beat.members["data"] // 32
BEAT_WORDS = -(-Beat.size // 32)
_KEEP = Beat["keep"].offset // 32
KEEP_WORDS = range(_KEEP, _KEEP + Beat.members["keep"] // 32)
"""Words of a beat that say which bytes are valid."""
LAST_BIT = Beat["last"].offset
"""Bit of a beat that ends a packet."""

_LAST_WORD, _LAST_MASK = LAST_BIT // 32, np.uint32(1 << LAST_BIT % 32)


def with_framing(data: np.ndarray, lengths: Sequence[int] | None = None) -> np.ndarray:
    """Return packet data framed as beats for a port: uint32 ``[n, 16]`` to ``[n, BEAT_WORDS]``.

    ``lengths``: beats of each packet in ``data``, in order; by default one packet.
    """
    beats = np.zeros((len(data), BEAT_WORDS), np.uint32)
    beats[:, :DATA_WORDS] = data
    beats[:, KEEP_WORDS.start:KEEP_WORDS.stop] = 0xFFFFFFFF
    ends = np.cumsum([len(data)] if lengths is None else lengths) - 1
    beats[ends, _LAST_WORD] |= _LAST_MASK
    return beats


def arrivals(starts: Sequence[float], lengths: Sequence[int], cycles_per_beat: float,
             latency: float = 0.0) -> np.ndarray:
    """Return the cycle in which each beat of some packets arrives: uint64 ``[beats]``.

    A beat arrives ``latency`` after its last byte left; packet ``i`` of ``lengths[i]`` beats
    begins to leave at ``starts[i]``, and each beat takes ``cycles_per_beat``.
    """
    counts = np.asarray(lengths)
    # Subtract the beats of earlier packets: positions count from 1 in each packet.
    before = (counts.cumsum() - counts).repeat(counts)
    ends = np.asarray(starts, np.float64).repeat(counts)
    ends += (np.arange(1, len(before) + 1) - before) * cycles_per_beat
    ends += latency
    return np.ceil(ends).astype(np.uint64)


class Packets(NamedTuple):
    """Whole packets, concatenated.

    Members: ``beats``, uint32 ``[n, BEAT_WORDS]``; for each packet ``starts`` and ``ends``, its
        first row and the row after its last, and ``cycles``, the cycle in which its last beat was
        taken.
    """

    beats: np.ndarray
    starts: list[int]
    ends: list[int]
    cycles: list[int]


_NONE = Packets(np.empty((0, BEAT_WORDS), np.uint32), [], [], [])


class PacketTap:
    """Reader of whole packets from an engine's output; a packet may span several quanta."""

    def __init__(self, engine: Engine, stream: str):
        self._engine = engine
        self._stream = stream
        self._rest = _NONE.beats

    def take(self) -> Packets:
        """Return the packets completed since the last call."""
        beats, cycles = self._engine.pop(self._stream)
        if not len(beats):
            return _NONE
        ends = (beats[:, _LAST_WORD] & _LAST_MASK).nonzero()[0]
        if not len(ends):
            self._rest = np.concatenate((self._rest, beats))
            return _NONE
        taken = cycles[ends].tolist()
        ends += 1 + len(self._rest)
        if len(self._rest):
            beats = np.concatenate((self._rest, beats))
        stops = ends.tolist()
        self._rest = beats[stops[-1]:]
        return Packets(beats, [0, *stops[:-1]], stops, taken)


def late(stream: str, number: int, cycle: int, now: int) -> RuntimeError:
    """Return the error for a beat with a past cycle."""
    return RuntimeError(f"{stream} of node {number} was given a beat for cycle {cycle} in cycle "
                        f"{now}")
