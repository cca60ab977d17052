"""Edges of a NIC, driven by hand, for callers in Python and in C."""

import ctypes
from ctypes import CFUNCTYPE, c_int, c_uint32, c_uint64, c_void_p

import numpy as np

from sim.nic.ports import BEAT_WORDS
from tests.sim.callbacks import nothing_if_raised

__all__ = ["Edge", "same"]

_POP = CFUNCTYPE(c_uint64, c_void_p, c_uint32, c_uint64, c_void_p, c_void_p)
_PUSH = CFUNCTYPE(None, c_void_p, c_uint32, c_uint64, c_void_p, c_void_p)
_RUN, _TELL = CFUNCTYPE(None, c_void_p, c_uint64), CFUNCTYPE(c_uint64, c_void_p)
_ACCESS = CFUNCTYPE(None, c_void_p, c_uint32, c_uint32, c_uint64, c_int)
_NEVER = (1 << 64) - 1
_OUT, _IN = 3, 5


class Edge:
    """Replacement of an engine.

    Members: ``send`` puts beats at its output; ``received``, the beats pushed; ``written``,
        address, value and cycle of each register write.

    Parameters: names of the output and the input.
    """

    def __init__(self, output: str, input: str):
        self.streams = output, input
        self.received: list[tuple[np.ndarray, np.ndarray]] = []
        self.written: list[tuple[int, int, int]] = []
        self.send(np.empty((0, BEAT_WORDS), np.uint32), np.empty(0, np.uint64))
        self.cycle, self.next_event = 0, None
        self._calls = (_RUN(lambda engine, until: setattr(self, "cycle", until)),
                       _TELL(lambda engine: self.cycle), _TELL(lambda engine: _NEVER),
                       _POP(nothing_if_raised(self._native_pop)), _PUSH(self._native_push))
        self._access = _ACCESS(self._native_access)
        self.native_access = ctypes.cast(self._access, c_void_p).value or 0

    def set_rate(self, stream: str, **rate) -> None:
        assert stream == self.streams[0]

    def native(self, *streams: str) -> tuple[int, ...]:
        assert streams == self.streams
        calls = (ctypes.cast(call, c_void_p).value or 0 for call in self._calls)
        return id(self), _OUT, _IN, *calls

    def send(self, beats: np.ndarray, cycles: np.ndarray) -> None:
        self._sent = beats, cycles

    def pop(self, stream: str) -> tuple[np.ndarray, np.ndarray]:
        assert stream == self.streams[0]
        beats, cycles = self._sent
        self.send(beats[:0], cycles[:0])
        return beats, cycles

    def push(self, stream: str, beats: np.ndarray, cycles: np.ndarray) -> None:
        assert stream == self.streams[1]
        self.received.append((beats.copy(), cycles.copy()))

    def write(self, addr: int, data: int, cycle: int) -> None:
        self.written.append((addr, data, cycle))

    def _native_access(self, engine, addr, data, cycle, is_write):
        assert (engine, is_write) == (id(self), 1)
        self.write(addr, data, cycle)

    def _native_pop(self, engine, stream, room, beats, cycles):
        assert (engine, stream) == (id(self), _OUT)
        count = len(self._sent[1])
        if count <= room:
            payloads, times = map(np.ascontiguousarray, self.pop(self.streams[0]))
            ctypes.memmove(beats, payloads.ctypes.data, payloads.nbytes)
            ctypes.memmove(cycles, times.ctypes.data, times.nbytes)
        return count

    def _native_push(self, engine, stream, count, beats, cycles):
        assert (engine, stream) == (id(self), _IN)
        words = (c_uint32 * (count * BEAT_WORDS)).from_address(beats)
        times = (c_uint64 * count).from_address(cycles)
        self.push(self.streams[1], np.array(words, np.uint32).reshape(-1, BEAT_WORDS),
                  np.array(times, np.uint64))


def same(one: Edge, other: Edge) -> bool:
    """Return whether both received the same beats in the same cycles, in the same pushes."""
    return len(one.received) == len(other.received) and all(
        np.array_equal(beats, others) and np.array_equal(cycles, times)
        for (beats, cycles), (others, times) in zip(one.received, other.received))
