"""The host's port of a compiled NIC, compiled too."""

import ctypes
from array import array
from collections.abc import Sequence
from ctypes import POINTER, c_double, c_uint32, c_uint64, c_void_p
from pathlib import Path

import numpy as np

from host.timing.pcie import Pcie
from rtl.formats import BEAT_BYTES
from sim.engines import Engine
from sim.engines.compiled import CompiledEngine
from sim.engines.library import library
from sim.nic.ports import BEAT_WORDS, DATA_WORDS, KEEP_WORDS, LAST_BIT, Packets, late
from sim.node.host_port import HostPort

__all__ = ["CompiledHostPort", "host_port"]

_IN_TIME = (1 << 64) - 1


class _Framing(ctypes.Structure):
    _fields_ = tuple((name, c_uint32)
                     for name in ("words", "data_words", "keep_word", "keep_words", "last_bit"))


_FRAMING = _Framing(BEAT_WORDS, DATA_WORDS, KEEP_WORDS.start, len(KEEP_WORDS), LAST_BIT)
_FUNCTIONS = {
    "ember_port_new": (c_void_p, [POINTER(_Framing), c_void_p, c_uint32, c_uint32, c_void_p,
                                  c_void_p]),
    "ember_port_free": (None, [c_void_p]),
    "ember_port_take": (c_uint64, [c_void_p, POINTER(c_uint64)]),
    "ember_port_packets": (None, [c_void_p, c_void_p, c_void_p]),
    "ember_port_send": (c_uint64, [c_void_p, c_uint64, c_uint64, c_void_p, c_void_p, c_void_p,
                                   c_double, c_double]),
}
_NONE = Packets(np.empty((0, DATA_WORDS), np.uint32), [], [], [])


class CompiledHostPort:
    """What :class:`sim.node.host_port.HostPort` does, beats never touched by Python.

    ``BuildError`` when the C++ compiler fails; the first instance compiles where nothing is cached.
    """

    def __init__(self, engine: CompiledEngine, number: int, cycles_per_byte: float, latency: int):
        self._lib = library(Path(__file__).with_suffix(".cpp"), _FUNCTIONS)
        self._engine, self._number = engine, number  # the engine is used as long as this is there
        self._per_beat, self._latency = BEAT_BYTES * cycles_per_byte, latency
        self._beats = c_uint64()
        self._port = self._lib.ember_port_new(
            _FRAMING, *engine.native("host_tx", "host_rx"), *engine.native_calls)

    def __del__(self):
        if getattr(self, "_port", None) is not None:
            self._lib.ember_port_free(self._port)

    def take(self) -> Packets:
        """See :meth:`sim.node.host_port.HostPort.take`."""
        count = self._lib.ember_port_take(self._port, self._beats)
        if not count:
            return _NONE
        places = np.empty((count, 3), np.uint64)
        data = np.empty((self._beats.value, DATA_WORDS), np.uint32)
        self._lib.ember_port_packets(self._port, places.ctypes.data, data.ctypes.data)
        return Packets(data, *places.T.tolist())

    def give(self, packets: Sequence[np.ndarray], starts: Sequence[float], now: int) -> None:
        """See :meth:`sim.node.host_port.HostPort.give`."""
        data = np.concatenate(packets, dtype=np.uint32)
        lengths, times = array("I", map(len, packets)), array("d", starts)
        cycle = self._lib.ember_port_send(
            self._port, now, len(lengths), data.ctypes.data, lengths.buffer_info()[0],
            times.buffer_info()[0], self._per_beat, self._latency)
        if cycle != _IN_TIME:
            raise late("host_rx", self._number, cycle, now)


def host_port(engine: Engine, number: int, pcie: Pcie) -> HostPort | CompiledHostPort:
    """Return a host's port of the NIC of node ``number``: compiled where the NIC is."""
    rate = pcie.to_nic.cycles_per_byte
    if isinstance(engine, CompiledEngine):
        return CompiledHostPort(engine, number, rate, pcie.latency)
    return HostPort(engine, number, rate, pcie.latency)
