"""A compiled NIC with its host and GPU, all of it compiled."""

import ctypes
from ctypes import POINTER, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from host.model import Model
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile
from rtl.config import NicConfig
from sim.engines.compiled import CompiledEngine
from sim.engines.library import library
from sim.native.host import HOST_FUNCTIONS, HOST_LONG, HostConfig, NativeNode
from sim.native.rows import rows_of
from sim.native.wire import wire_words

__all__ = ["CompiledNode"]


class _Calls(ctypes.Structure):
    _fields_ = tuple((name, c_void_p) for name in ("run", "cycle", "next_event", "pop", "push"))


_FUNCTIONS = {
    "ember_host_new": (c_void_p, [c_void_p, POINTER(_Calls), c_void_p, c_uint32, c_uint32,
                                  POINTER(HostConfig)]),
    "ember_wire_words": (c_uint32, []),
}


@cache
def _library() -> SimpleNamespace:
    return library(Path(__file__).with_name("host.cpp"), HOST_FUNCTIONS | _FUNCTIONS,
                   long=HOST_LONG)


class CompiledNode(NativeNode):
    """Does what :class:`sim.node.node.Node` does for a compiled NIC, to the bit.

    It advances without Python, so that the nodes of several threads do not wait for each other.

    It does not train, its host and GPU do not fall silent, and its NIC is not traced.
    ``BuildError`` when the C++ compiler fails; the first instance compiles where nothing is cached.

    Parameters
    ----------
    number, engine, config, pcie, gpu, in_flight, bottom: as of a :class:`sim.node.node.Node`.
    model, seed: of the rows in GPU memory.
    """

    def __init__(self, number: int, engine: CompiledEngine, config: NicConfig, model: Model,
                 seed: int, pcie: PcieProfile, gpu: GpuProfile, in_flight: int,
                 bottom: int | None = None):
        functions, wire = _library(), wire_words()
        if len(wire) != functions.ember_wire_words():
            raise RuntimeError(f"the host wants {functions.ember_wire_words()} words of layouts, "
                               f"not {len(wire)}")
        self._rows = rows_of(model, seed)  # used as long as the host is there
        calls = _Calls(*engine.native_clock, *engine.native_calls)
        super().__init__(
            number, engine, config, model.dimension, pcie, gpu, in_flight, bottom, functions,
            lambda host: functions.ember_host_new(
                wire.ctypes.data, calls, *engine.native("host_tx", "host_rx"), host),
            ctypes.addressof(self._rows))
