"""A modelled NIC as an engine: the packets of the RTL, in the model's cycles.

Reference: the RTL of :mod:`rtl.nic` on an engine of :mod:`sim.engines`.
"""

from collections.abc import Mapping, Sequence
from ctypes import POINTER, c_int64, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from amaranth.hdl import Const

from host.placement.shard import ShardPlan
from rtl.config import NicConfig
from rtl.formats import Beat
from rtl.network.link.arrival_bits import WORDS
from rtl.reset import QUIET_CYCLES
from sim.engines.compiled import CompiledEngine, Room
from sim.engines.design import Design, StreamPort
from sim.engines.library import library
from sim.host_cpp.host import HOST_FUNCTIONS, HOST_LONG
from sim.host_cpp.plan import plan_of
from sim.host_cpp.structures import HostConfig, Plan
from sim.nic.ports import BEAT_WORDS
from sim.nic.registers import address_of
from sim.nic_cpp.counters import COUNTED
from sim.nic_cpp.layout import Config, config_of, generated_headers

__all__ = ["ModelEngine"]

_STREAMS = {"host_tx": 0, "net_tx": 1, "host_rx": 0, "net_rx": 1}
_NO_VALUES = (Const(0),) * 3
"""Replacement for the payload, valid and ready of a stream's RTL."""
_NEVER = (1 << 64) - 1
_UNLINKED = (
    "network must not lose frames with fidelity fast and link: the model does not send again",
    "link_timeout_first and link_timeout_least must exceed every round trip with fidelity fast: "
    "the model does not send again")
_STORED = ("step_floor", "lists_consumed", "vectors_produced")
"""Registers that are written while a NIC runs, in the order of their numbers in ``nic.cpp``."""
_FUNCTIONS: dict[str, tuple[Any, list]] = {
    "ember_new": (c_void_p, [POINTER(Config), POINTER(Plan)]),
    "ember_free": (None, [c_void_p]),
    "ember_run": (None, [c_void_p, c_uint64]),
    "ember_push": (None, [c_void_p, c_uint32, c_uint64, c_void_p, c_void_p]),
    "ember_waiting": (c_uint64, [c_void_p, c_uint32]),
    "ember_pop": (c_uint64, [c_void_p, c_uint32, c_uint64, c_void_p, c_void_p]),
    "ember_rate": (None, [c_void_p, c_uint32, c_uint64, c_uint64, c_uint64, c_int64]),
    "ember_hold": (None, [c_void_p, c_uint32, c_uint64]),
    "ember_store": (None, [c_void_p, c_uint32, c_uint32, c_uint64]),
    "ember_idle": (c_uint32, [c_void_p]),
    "ember_unlinked": (c_uint32, [c_void_p]),
    "ember_cycle": (c_uint64, [c_void_p]),
    "ember_next_event": (c_uint64, [c_void_p]),
    "ember_last_beat": (c_uint64, [c_void_p]),
    "ember_evaluated": (c_uint64, [c_void_p]),
    "ember_counters": (None, [c_void_p, c_void_p]),
    "ember_host_new": (c_void_p, [c_void_p, POINTER(HostConfig)]),
    **HOST_FUNCTIONS,
}


@cache
def _library() -> SimpleNamespace:
    here = Path(__file__).parent
    return library(here / "nic.cpp", _FUNCTIONS, long=("ember_run", *HOST_LONG),
                   include=(here.parent / "host_cpp",), generated=generated_headers())


@cache
def _stored(config: NicConfig) -> dict[int, str]:
    return {address_of(config, name): name for name in _STORED}


class ModelEngine(CompiledEngine):
    """One modelled NIC. Parameter: its configuration. Call :meth:`begin` before anything else.

    It evaluates only cycles in which something moves inside. Vectors have no values.
    """

    def __init__(self, config: NicConfig):
        self.design = Design({name: StreamPort(name, name.endswith("rx"), Beat.size, *_NO_VALUES)
                              for name in _STREAMS})
        self._results, self._channels = [], 0
        self._lib, self._engine = _library(), None
        self._index = _STREAMS
        self._rooms = {stream: Room(256, BEAT_WORDS) for stream in ("host_tx", "net_tx")}
        # The RTL sweeps its tables for this many cycles after reset; idle rises two cycles later.
        self._swept = QUIET_CYCLES + 2 + max(
            config.local_cache_sets, config.remote_cache_sets, config.dedupe_sets,
            config.hold_vectors, config.remote_in_flight, config.misses_in_flight,
            config.dedupe_in_flight, config.owner_bags,
            *([config.nodes * WORDS] if config.link else []))
        self.config = config
        """Its configuration."""

    def begin(self, registers: Mapping[str, int], plan: ShardPlan,
              bases: Sequence[int] = ()) -> None:
        """Create the NIC with these register values and table descriptors.

        ``bases``: addresses of tables in GPU memory. ``MemoryError`` if memory does not suffice.
        """
        # The arrays must live as long as the NIC.
        self._plan = plan_of(plan, bases)
        self._engine = self._lib.ember_new(config_of(self.config, registers), self._plan)
        if not self._engine:
            raise MemoryError

    def store(self, name: str, value: int, cycle: int) -> None:
        """Write a register at ``cycle``; ``KeyError`` for a register that no run changes."""
        if name not in _STORED:
            raise KeyError(name)
        self._lib.ember_store(self._engine, _STORED.index(name), value, cycle)

    def write(self, addr: int, data: int, cycle: int = 0) -> None:
        self.store(_stored(self.config)[addr], data, cycle)

    def counts(self) -> dict[str, int]:
        """Return the NIC's counters; ``ValueError`` if its link had to send a packet again."""
        if found := self._lib.ember_unlinked(self._engine):
            raise ValueError(_UNLINKED[found - 1])
        values = np.zeros(len(COUNTED), np.uint64)
        self._lib.ember_counters(self._engine, values.ctypes.data)
        return dict(zip(COUNTED, values.tolist(), strict=True))

    def written(self, cycle: int) -> None:
        """Note that the last register write is answered at ``cycle``: ``idle`` follows two
        cycles later."""
        self._swept = max(self._swept, cycle + 1)

    def get_signal(self, name: str) -> int:
        if name != "idle":
            raise ValueError(f"signal must be idle in a modelled NIC, not {name!r}")
        return int(self.cycle > self._swept and self._lib.ember_idle(self._engine))

    @property
    def functions(self) -> tuple[SimpleNamespace, int]:
        """The compiled functions, and the address of the NIC as their argument."""
        assert self._engine is not None
        return self._lib, self._engine

    @property
    def registers_pending(self) -> int:
        return 0
