"""Instances of a compiled design, run by the C++ harness through ctypes."""

import ctypes
import os
from ctypes import POINTER, Array, c_char_p, c_int, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path

import numpy as np

from sim.engines.design import AXI_MEMBERS, Design
from sim.engines.engine import CHANNEL_PORTS, NS_PER_CYCLE, Engine, Model
from sim.engines.library import Functions, bind
from sim.engines.trace import TraceSink

__all__ = ["CompiledModel", "Room"]

_NO_PORT = (1 << 32) - 1
_NEVER = (1 << 64) - 1
_REGISTER_INPUTS = ("awaddr", "awvalid", "wdata", "wstrb", "wvalid", "bready", "araddr", "arvalid",
                    "rready")
_U32P, _U64P = POINTER(c_uint32), POINTER(c_uint64)
_FUNCTIONS: Functions = {
    "ember_new": (c_void_p, [c_int64, *[c_uint32] * 6, c_int]),
    "ember_free": (None, [c_void_p]),
    "ember_add_input": (None, [c_void_p, c_uint32, c_uint32, c_uint32, c_uint32]),
    "ember_add_output": (None, [c_void_p, c_uint32, c_uint32, c_uint32, c_uint32]),
    "ember_registers": (None, [c_void_p, _U32P]),
    "ember_start": (None, [c_void_p]),
    "ember_reset": (None, [c_void_p, c_int]),
    "ember_run": (None, [c_void_p, c_uint64]),
    "ember_push": (None, [c_void_p, c_uint32, c_uint64, c_void_p, c_void_p]),
    "ember_waiting": (c_uint64, [c_void_p, c_uint32]),
    "ember_pop": (c_uint64, [c_void_p, c_uint32, c_uint64, c_void_p, c_void_p]),
    "ember_rate": (None, [c_void_p, c_uint32, c_uint64, c_uint64, c_uint64, c_int64]),
    "ember_stall": (None, [c_void_p, c_int, c_uint32, c_uint64, c_uint64]),
    "ember_hold": (None, [c_void_p, c_uint32, c_uint64]),
    "ember_add_channels": (None, [c_void_p, c_uint32, c_uint32, c_uint32]),
    "ember_last_beat": (c_uint64, [c_void_p]),
    "ember_channels": (None, [c_void_p, c_void_p, c_void_p]),
    "ember_set_signal": (None, [c_void_p, c_uint32, c_char_p]),
    "ember_port_bytes": (c_uint32, [c_void_p, c_uint32]),
    "ember_get_signal": (None, [c_void_p, c_uint32, c_void_p]),
    "ember_register_op": (None, [c_void_p, c_uint32, c_uint32, c_uint64, c_int]),
    "ember_registers_pending": (c_uint64, [c_void_p]),
    "ember_register_results": (c_uint64, [c_void_p]),
    "ember_pop_registers": (None, [c_void_p, _U64P, _U32P]),
    "ember_cycle": (c_uint64, [c_void_p]),
    "ember_next_event": (c_uint64, [c_void_p]),
    "ember_run_bare": (None, [c_void_p, c_uint64]),
    "ember_record": (None, [c_void_p, _U32P, c_uint32]),
    "ember_recorded": (c_uint64, [c_void_p]),
    "ember_pop_recorded": (None, [c_void_p, c_void_p]),
    "ember_replay": (None, [c_void_p, _U32P, c_uint32, c_void_p, c_uint64]),
    "ember_evaluated": (c_uint64, [c_void_p]),
}

_SINK = ctypes.CFUNCTYPE(None, c_void_p, c_uint64)
_TRACE_FUNCTIONS: Functions = {
    "ember_trace": (None, [c_void_p, _SINK, c_uint64, c_uint64, c_uint64]),
    "ember_trace_close": (None, [c_void_p]),
}


_LONG = ("ember_run", "ember_run_bare", "ember_replay")
"""Functions that run longer than releasing and reacquiring Python's lock takes."""


class CompiledModel(Model):
    """A design in a shared library: harness, glue and compiled design.

    Parameters
    ----------
    library: the shared library. positions: index of each flat port in the glue's table.
    traced: whether the library was compiled so that its instances can be traced.
    """

    def __init__(self, name: str, design: Design, library: Path, positions: dict[str, int],
                 traced: bool = False):
        super().__init__(name, design)
        self.path = library
        self.positions = positions
        self.traced = traced
        self.functions = bind(library, _FUNCTIONS | _TRACE_FUNCTIONS if traced else _FUNCTIONS,
                              _LONG)

    def instance(self, *, skip: bool = True, random_init: int | None = None) -> "CompiledEngine":
        """Return a new instance, just out of reset."""
        if random_init is not None and not 0 <= random_init < 1 << 30:
            raise ValueError(f"random_init must be between 0 and 2^30, not {random_init!r}")
        kind = TracedEngine if self.traced else CompiledEngine
        return kind(self, skip, -1 if random_init is None else random_init)


class Room:
    """A buffer for beats of an output; its addresses are looked up only once."""

    def __init__(self, beats: int, words: int):
        self.payloads = np.empty((beats, words), dtype=np.uint32)
        self.cycles = np.empty(beats, dtype=np.uint64)
        self.target = beats, self.payloads.ctypes.data, self.cycles.ctypes.data


class CompiledEngine(Engine):
    """One instance of a compiled design. Long calls release Python's lock, which lets several
    threads run instances at the same time.

    Members: ``drivable``, whether other C++ may drive an instance for whole quanta, through the
        functions that :meth:`native` returns.
    """

    drivable = True
    _process: int | None = None
    """Process in which the C++ of this engine has threads; None for an engine without threads."""

    def __init__(self, model: CompiledModel, skip: bool, seed: int):
        super().__init__(model.design)
        self._positions = model.positions
        self._process = os.getpid()
        self._lib = lib = model.functions
        at = self._at
        self._engine: int | None = lib.ember_new(
            seed, at("clk"), at("rst"), at("idle"), at("time"), at("waits"), at("deadline"), skip)
        self._index: dict[str, int] = {}
        self._rooms = {port.name: Room(256, port.words) for port in self.design.outputs}
        for ports, add in ((self.design.inputs, lib.ember_add_input),
                           (self.design.outputs, lib.ember_add_output)):
            for index, port in enumerate(ports):
                self._index[port.name] = index
                add(self._engine, at(f"{port.name}__payload"), at(f"{port.name}__valid"),
                    at(f"{port.name}__ready"), port.words)
        if self.design.registers:
            table = [at(f"csr__{member}") for member in AXI_MEMBERS]
            lib.ember_registers(self._engine, (c_uint32 * len(table))(*table))
        if self._channels:
            lib.ember_add_channels(self._engine, at(CHANNEL_PORTS[0]), at(CHANNEL_PORTS[1]),
                                   self._channels)
        for name, port in self.design.signals.items():
            if port.is_input and port.init and name != "time":
                self._set_signal(name, port.init)
        lib.ember_start(self._engine)

    def _at(self, port: str) -> int:
        return self._positions.get(port, _NO_PORT)

    @property
    def cycle(self) -> int:
        return self._lib.ember_cycle(self._engine)

    @property
    def cycles_run(self) -> int:
        return self._lib.ember_evaluated(self._engine)

    @property
    def registers_pending(self) -> int:
        return self._lib.ember_registers_pending(self._engine)

    @property
    def next_event(self) -> int | None:
        event = self._lib.ember_next_event(self._engine)
        return None if event == _NEVER else event

    def run_bare(self, cycles: int) -> None:
        """Evaluate ``cycles`` with all inputs held, bypassing all queues: only to measure speed.

        Nothing is recorded and the cycle does not advance; do not use the instance afterwards.
        """
        self._lib.ember_run_bare(self._engine, cycles)

    def record(self) -> None:
        """Record all inputs in each cycle evaluated from now on, for :meth:`replay`."""
        inputs = self._inputs()
        self._lib.ember_record(self._engine, inputs, len(inputs))

    def recorded(self) -> np.ndarray:
        """Return the recording, opaque uint8, and stop recording."""
        stimulus = np.empty(self._lib.ember_recorded(self._engine), np.uint8)
        self._lib.ember_pop_recorded(self._engine, stimulus.ctypes.data)
        return stimulus

    def replay(self, stimulus: np.ndarray) -> None:
        """Evaluate the cycles of a recording, bypassing all queues: only to measure speed.

        The instance must be in the state in which the recording began; it then passes through the
        same states. Nothing is taken from its outputs, and its cycle does not advance.
        """
        inputs = self._inputs()
        self._lib.ember_replay(self._engine, inputs, len(inputs), stimulus.ctypes.data,
                               len(stimulus))

    def _inputs(self) -> Array[c_uint32]:
        """Return the positions of all inputs except clock and reset."""
        design, names = self.design, []
        for port in design.inputs:
            names += [f"{port.name}__payload", f"{port.name}__valid"]
        names += [f"{port.name}__ready" for port in design.outputs]
        names += [name for name, port in design.signals.items() if port.is_input]
        if design.registers:
            names += [f"csr__{member}" for member in _REGISTER_INPUTS]
        places = [place for place in map(self._at, names) if place != _NO_PORT]
        return (c_uint32 * len(places))(*places)

    def native(self, output: str, input: str) -> tuple[int, ...]:
        """Return the pointers with which other C++ drives this instance: its address, the indices
        of the two streams, and the addresses of ``ember_run``, ``ember_cycle``,
        ``ember_next_event``, ``ember_pop`` and ``ember_push`` of ``harness.cpp``."""
        assert self._engine is not None
        lib = self._lib
        calls = (ctypes.cast(call, c_void_p).value or 0 for call in (
            lib.ember_run, lib.ember_cycle, lib.ember_next_event, lib.ember_pop, lib.ember_push))
        return self._engine, self._index[output], self._index[input], *calls

    @property
    def native_access(self) -> int:
        """The address of ``ember_register_op`` of ``harness.cpp``."""
        return ctypes.cast(self._lib.ember_register_op, c_void_p).value or 0

    def close(self) -> None:
        if self._engine is not None:
            self._lib.ember_free(self._engine)
            self._engine = None

    def __del__(self):
        # A forked process lacks the threads of the C++, and the destructor would wait for them.
        if getattr(self, "_engine", None) and self._process in (None, os.getpid()):
            self.close()

    def _run(self, until: int) -> None:
        self._lib.ember_run(self._engine, until)

    def _push(self, stream: str, payloads: np.ndarray, cycles: np.ndarray) -> None:
        self._lib.ember_push(self._engine, self._index[stream], len(payloads),
                             payloads.ctypes.data, cycles.ctypes.data)

    def _pop(self, stream: str) -> tuple[np.ndarray, np.ndarray]:
        room = self._rooms[stream]
        count = self._lib.ember_pop(self._engine, self._index[stream], *room.target)
        if count > len(room.cycles):
            self._rooms[stream] = Room(2 * count, self.design.streams[stream].words)
            return self._pop(stream)
        return room.payloads[:count].copy(), room.cycles[:count].copy()

    def _waiting(self, stream: str) -> int:
        return self._lib.ember_waiting(self._engine, self._index[stream])

    def _set_rate(self, stream: str, beat: int, packet: int, burst: int, last: int) -> None:
        self._lib.ember_rate(self._engine, self._index[stream], beat, packet, burst, last)

    def _set_stall(self, stream: str, seed: int, threshold: int) -> None:
        self._lib.ember_stall(self._engine, self.design.streams[stream].is_input,
                              self._index[stream], seed, threshold)

    def _hold(self, stream: str, until: int) -> None:
        self._lib.ember_hold(self._engine, self._index[stream], until)

    def _last_beat(self) -> int | None:
        cycle = self._lib.ember_last_beat(self._engine)
        return None if cycle == _NEVER else cycle

    def _crossed(self) -> tuple[np.ndarray, np.ndarray]:
        beats, last = np.empty((2, self._channels), np.uint64)
        self._lib.ember_channels(self._engine, beats.ctypes.data, last.ctypes.data)
        return beats.view(np.int64), last.view(np.int64)

    def _bytes(self, name: str) -> int:
        return self._lib.ember_port_bytes(self._engine, self._at(name))

    def _set_signal(self, name: str, value: int) -> None:
        if self._at(name) != _NO_PORT:
            self._lib.ember_set_signal(self._engine, self._at(name),
                                       value.to_bytes(self._bytes(name), "little"))

    def _get_signal(self, name: str) -> int:
        buffer = ctypes.create_string_buffer(self._bytes(name))
        self._lib.ember_get_signal(self._engine, self._at(name), buffer)
        return int.from_bytes(buffer.raw, "little")

    def _set_reset(self, active: bool) -> None:
        self._lib.ember_reset(self._engine, active)

    def _access(self, addr: int, data: int, cycle: int, is_write: bool) -> None:
        self._lib.ember_register_op(self._engine, addr, data, cycle, is_write)

    def _pop_registers(self) -> list[tuple[int, int, int, int, int]]:
        count = self._lib.ember_register_results(self._engine)
        cycles = np.empty(count, dtype=np.uint64)
        words = np.empty((count, 4), dtype=np.uint32)
        self._lib.ember_pop_registers(self._engine, cycles.ctypes.data_as(_U64P),
                                      words.ctypes.data_as(_U32P))
        return [(int(cycle), int(addr), int(data), int(resp), int(is_write))
                for cycle, (addr, data, resp, is_write) in zip(cycles, words)]


class TracedEngine(CompiledEngine):
    """An instance of a design compiled for tracing."""

    drivable = False  # errors of the sink are raised after each call

    _sink: TraceSink | None = None
    _failure: BaseException | None = None

    def __init__(self, model: CompiledModel, skip: bool, seed: int):
        super().__init__(model, skip, seed)
        self.trace_scopes = (model.name, "ember_wrapper", "dut")

    def _trace(self, sink: TraceSink, first: int, last: int) -> None:
        def take(text: int, size: int) -> None:
            # An exception cannot pass through the library: keep it until the call returns.
            try:
                if self._failure is None:
                    sink.write(ctypes.string_at(text, size))
            except BaseException as error:
                self._failure = error

        self._sink, self._window, self._take = sink, (first, last), _SINK(take)
        self._lib.ember_trace(self._engine, self._take, first, last, NS_PER_CYCLE)
        self._raise()

    def _end_trace(self) -> None:
        if self._sink is None:
            return
        self._lib.ember_trace_close(self._engine)
        self._raise()
        first, last = self._window
        end = min(last + 1, self.cycle)
        if end > first:
            self._sink.write(f"#{end * NS_PER_CYCLE}\n".encode())
        self._sink = None

    def close(self) -> None:
        if self._engine is not None:
            self._end_trace()
        super().close()

    def _run(self, until: int) -> None:
        super()._run(until)
        self._raise()

    def _raise(self) -> None:
        """Raise the sink's error, if any. The error ends the trace."""
        failure, self._failure = self._failure, None
        if failure is not None:
            self._sink = None
            raise failure
