"""A node of a compiled NIC with a compiled host and GPU. Reference: :mod:`sim.node.node`."""

import ctypes
from ctypes import POINTER, c_void_p
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from host.model import Model
from host.timing.gpu import GpuProfile
from host.timing.pcie import PcieProfile
from host.wire.rows import GivenRows
from rtl.config import NicConfig
from sim.engines.compiled import CompiledEngine
from sim.engines.library import library
from sim.host_cpp.formats import header_text
from sim.host_cpp.host import HOST_FUNCTIONS, HOST_LONG, NativeNode
from sim.host_cpp.rows import given_rows, rows_of
from sim.host_cpp.structures import CountPort, EnginePort, HostConfig
from sim.nic.registers import address_of
from sim.node.delivery import Delivery

__all__ = ["CompiledNode"]


_FUNCTIONS = {"ember_host_new": (
    c_void_p, [POINTER(EnginePort), POINTER(CountPort), POINTER(HostConfig)])}


@cache
def _library() -> SimpleNamespace:
    return library(Path(__file__).with_name("host.cpp"), HOST_FUNCTIONS | _FUNCTIONS,
                   long=HOST_LONG, generated={"formats.h": header_text()})


class CompiledNode(NativeNode):
    """A compiled node. Reference, bit for bit: :class:`sim.node.node.Node`.

    It advances without Python: nodes on several threads do not contend for Python's lock. It
    supports neither training, nor faults of the host and GPU, nor waveforms. ``BuildError`` if the
    C++ compiler fails. The first instance compiles unless the cache has the library.

    Parameters
    ----------
    number, engine, config, pcie, gpu, in_flight, bottom, delivery: as in
        :class:`sim.node.node.Node`.
    model, seed: source of the rows in GPU memory.
    rows: rows in GPU memory instead of the model's, if given.
    """

    def __init__(self, number: int, engine: CompiledEngine, config: NicConfig, model: Model,
                 seed: int, pcie: PcieProfile, gpu: GpuProfile, in_flight: int,
                 bottom: int | None = None, delivery: Delivery | None = None,
                 rows: GivenRows | None = None):
        functions, port = _library(), EnginePort(*engine.native("host_tx", "host_rx"))
        counts = CountPort(engine.native_access, *(
            address_of(config, name) for name in ("lists_consumed", "vectors_produced")))
        # Must live as long as the host.
        self._rows = (rows_of(model, seed) if rows is None else
                      given_rows(rows, model.width))
        super().__init__(
            number, engine, config, model.width, pcie, gpu, in_flight, bottom, functions,
            lambda host: functions.ember_host_new(port, counts, host), ctypes.addressof(self._rows),
            delivery)
