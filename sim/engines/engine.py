"""The interface of an engine: one running instance of a design."""

import zlib
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from host.timing.clock import CYCLE_NS
from sim.engines.design import Design, SignalPort, StreamPort
from sim.engines.trace import TraceSink

__all__ = ["CHANNEL_PORTS", "FOREVER", "NS_PER_CYCLE", "RESET_CYCLES", "Channels", "Engine",
           "Model", "RegisterAccess", "RegisterError"]

NS_PER_CYCLE = round(CYCLE_NS)
"""Nanoseconds of a cycle in a trace."""

CHANNEL_PORTS = ("channels__valid", "channels__ready")
"""Outputs that show the handshakes of a design's internal streams, one bit each."""

RESET_CYCLES = 4
"""Least cycles of a reset that reaches every register of a design."""

FOREVER = (1 << 63) - 1
"""A cycle that never comes."""

FRACTION = 1 << 20
"""Link time is kept in units of 1/FRACTION cycles."""


class RegisterError(Exception):
    """A register access was answered with an error response."""


class RegisterAccess(NamedTuple):
    """A register read: address, data, cycle in which the data arrived."""

    addr: int
    data: int
    cycle: int


class Channels(NamedTuple):
    """State of the streams inside a design, one entry per stream.

    Members: ``valid`` and ``ready``, bool; ``beats`` transferred; ``last``, the cycle of the last
        beat, -1 before the first.
    """

    valid: np.ndarray
    ready: np.ndarray
    beats: np.ndarray
    last: np.ndarray


class Engine(ABC):
    """One instance of a design, from reset on.

    Cycles are absolute: 0 is the first after reset. In each cycle the inputs are driven, beats
    cross where both ``valid`` and ``ready`` are high, then the clock rises. ``time`` is driven with
    the cycle. If the design has ``idle``, cycles in which the design cannot change are not
    evaluated (``skip``); results and cycles are the same. If ``waits`` is 1, an idle design moves
    by itself when ``time`` reaches its ``deadline``.
    """

    def __init__(self, design: Design):
        self.design = design
        self._results: list[RegisterAccess] = []
        self._least = 0  # the first cycle in which a reset may end
        shown = [design.signals.get(port) for port in CHANNEL_PORTS]
        self._channels = shown[0].width if shown[0] and shown[1] else 0

    # Streams

    def push(self, stream: str, payloads: np.ndarray, cycles: np.ndarray | int = 0) -> None:
        """Offer beats to input ``stream``, in order, each in its cycle at the earliest.

        payloads: uint32 ``[n, words]``, little-endian words.
        cycles: uint64 ``[n]`` or one number for all beats. A beat with a past cycle is offered at
            once.
        """
        port = self._stream(stream, is_input=True)
        payloads = np.ascontiguousarray(payloads, dtype=np.uint32)
        if payloads.ndim != 2 or payloads.shape[1] != port.words:
            raise ValueError(f"payloads of {stream} must have shape (n, {port.words}), "
                             f"not {payloads.shape!r}")
        spare = 32 * port.words - port.width
        if spare and len(payloads) and int(payloads[:, -1].max()) >> (32 - spare):
            raise ValueError(f"payloads of {stream} must fit {port.width} bits, "
                             f"not {hex(int(payloads[:, -1].max()))!r} in the last word")
        given = np.ascontiguousarray(cycles, dtype=np.uint64)
        if np.ndim(cycles) == 0:
            given = np.full(len(payloads), given[0])
        elif given.shape != (len(payloads),):
            raise ValueError(f"cycles of {stream} must be one or as many as the payloads "
                             f"({len(payloads)}), not {given.shape!r}")
        self._push(stream, payloads, given)

    def pop(self, stream: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the beats taken from output ``stream`` since the last call, and their cycles."""
        self._stream(stream, is_input=False)
        return self._pop(stream)

    def waiting(self, stream: str) -> int:
        """Return how many beats pushed to ``stream`` the design has not taken."""
        self._stream(stream, is_input=True)
        return self._waiting(stream)

    def set_rate(self, stream: str, cycles_per_beat: float = 0.0, cycles_per_packet: float = 0.0,
                 last_bit: int | None = None, burst: float = 0.0) -> None:
        """Limit output ``stream`` to the rate of a link.

        cycles_per_beat: cycles for which each beat occupies the link.
        cycles_per_packet: additional cycles of a beat whose payload bit ``last_bit`` is 1.
        burst: cycles of traffic that may wait in front of the link.

        ``cycles_per_beat`` and ``cycles_per_packet`` of 0 remove the limit.
        """
        port = self._stream(stream, is_input=False)
        for name, value in (("cycles_per_beat", cycles_per_beat), ("burst", burst),
                            ("cycles_per_packet", cycles_per_packet)):
            if not 0 <= value < 1 << 20:
                raise ValueError(f"{name} must be between 0 and {1 << 20}, not {value!r}")
        if last_bit is None:
            if cycles_per_packet:
                raise ValueError("last_bit must be given with cycles_per_packet, not None")
        elif not 0 <= last_bit < port.width:
            raise ValueError(f"last_bit must be between 0 and {port.width - 1}, not {last_bit!r}")
        self._set_rate(stream, round(cycles_per_beat * FRACTION),
                       round(cycles_per_packet * FRACTION), round(burst * FRACTION),
                       -1 if last_bit is None else last_bit)

    def set_stall(self, stream: str, seed: int, probability: float) -> None:
        """Stall ``stream`` in random cycles: input beats are offered later, output ready is low.

        The cycles depend on seed, stream and cycle only, and are the same in every engine.
        """
        if stream not in self.design.streams:
            raise ValueError(self._unknown("stream", stream, self.design.streams))
        if not 0 <= probability < 1:
            raise ValueError(f"probability must be between 0 and below 1, not {probability!r}")
        mixed = (seed * 0x100000001 ^ zlib.crc32(stream.encode())) & (1 << 64) - 1
        self._set_stall(stream, mixed, int(probability * (1 << 32)))

    def hold(self, stream: str, until: int) -> None:
        """Hold output ``stream``: take no beat from it before cycle ``until``."""
        self._stream(stream, is_input=False)
        if not 0 <= until <= FOREVER:
            raise ValueError(f"until must be between 0 and 2^63 - 1, not {until!r}")
        self._hold(stream, until)

    # Channels

    @property
    def last_beat(self) -> int | None:
        """The cycle in which a beat last crossed any of the design's internal streams.

        None before the first beat, or if the design does not show its internal streams.
        """
        return self._last_beat()

    def channels(self) -> Channels:
        """Return the state of the internal streams; ``ValueError`` if the design shows none."""
        if not self._channels:
            raise ValueError(f"the design must have ports {' and '.join(CHANNEL_PORTS)} to show "
                             f"its channels")
        valid, ready = (self.get_signal(port) for port in CHANNEL_PORTS)
        bits = range(self._channels)
        return Channels(np.array([bool(valid >> k & 1) for k in bits]),
                        np.array([bool(ready >> k & 1) for k in bits]), *self._crossed())

    # Signals and registers

    def set_signal(self, name: str, value: int) -> None:
        """Drive input signal ``name`` from the current cycle on."""
        port = self._signal(name)
        if not port.is_input or name == "time":
            raise ValueError(f"signal must be an input that the engine does not drive, "
                             f"not {name!r}")
        if not 0 <= value < 1 << port.width:
            raise ValueError(f"{name} must fit {port.width} bits, not {value!r}")
        self._set_signal(name, value)

    def get_signal(self, name: str) -> int:
        """Return a plain port's value after the last cycle's clock edge, as an unsigned number."""
        return self._get_signal(self._signal(name).name)

    def reset(self, active: bool) -> None:
        """Begin or end a reset of the design, from the current cycle on.

        Streams and register accesses continue in the reset. A reset lasts at least
        :data:`RESET_CYCLES`; a call that ends it earlier runs the design up to that length.
        """
        if active:
            self._least = self.cycle + RESET_CYCLES
        else:
            self.run(self._least)
        self._set_reset(active)

    @property
    def at_rest(self) -> bool:
        """Whether the design is idle, and stays so until an input moves."""
        return bool(self.get_signal("idle")) and not (
            "waits" in self.design.signals and self.get_signal("waits"))

    def write(self, addr: int, data: int, cycle: int = 0) -> None:
        """Queue a register write. Accesses are made in order of their cycles, each in its cycle at
        the earliest; accesses of the same cycle keep the order in which they were queued."""
        self._check_access(addr, data)
        self._access(addr, data, cycle, True)

    def read(self, addr: int, cycle: int = 0) -> None:
        """Queue a register read; :meth:`read_results` returns its data."""
        self._check_access(addr, 0)
        self._access(addr, 0, cycle, False)

    def read_results(self) -> list[RegisterAccess]:
        """Return the reads completed since the last call.

        ``RegisterError`` if the design answered an access, read or write, with an error.
        """
        found = []
        for cycle, addr, data, resp, is_write in self._pop_registers():
            if resp:
                kind = "write to" if is_write else "read of"
                raise RegisterError(f"{kind} register {addr:#x} in cycle {cycle} was answered "
                                    f"with {('', 'EXOKAY', 'SLVERR', 'DECERR')[resp]}")
            if not is_write:
                found.append(RegisterAccess(addr, data, cycle))
        return found

    # Traces

    trace_scopes: tuple[str, ...] = ()
    """Names of the scopes around the design in a trace, outermost first; empty without tracing."""

    trace_strings = False
    """Whether values in a trace may be words (of enumerations)."""

    def trace(self, sink: TraceSink, first: int, last: int) -> None:
        """Write every signal in cycles ``first`` to ``last``, both included, to ``sink`` as VCD.

        Cycle n begins n * :data:`NS_PER_CYCLE` ns after cycle 0, with the clock low and the inputs
        of the cycle; the values shown then cross when the clock rises, half a cycle later. Skipped
        cycles show no change, not even of clock and ``time``. :meth:`run` raises the exceptions of
        ``sink.write``. ``ValueError`` if the model was not loaded for tracing, or if the window is
        empty or begins in the past.
        """
        if not self.trace_scopes:
            raise ValueError("the model must be loaded with traced=True to trace its instances")
        if not self.cycle <= first <= last:
            raise ValueError(f"first and last cycle of a trace must be in order and at least "
                             f"{self.cycle}, not {first!r} and {last!r}")
        self._trace(sink, first, last)

    def end_trace(self) -> None:
        """Write the rest of the trace to its sink, if there is a trace."""
        self._end_trace()

    # Time

    def run(self, until: int) -> None:
        """Run up to, not including, cycle ``until``; do nothing if ``until`` has passed."""
        if not 0 <= until < 1 << 43:
            raise ValueError(f"until must be between 0 and 2^43, not {until!r}")
        self._run(until)

    @property
    @abstractmethod
    def cycle(self) -> int:
        """The next cycle."""

    @property
    @abstractmethod
    def cycles_run(self) -> int:
        """Cycles evaluated."""

    @property
    def cycles_skipped(self) -> int:
        """Cycles skipped."""
        return self.cycle - self.cycles_run

    @property
    @abstractmethod
    def next_event(self) -> int | None:
        """The first cycle in which something may happen without further input.

        The value is :attr:`cycle` while the instance is busy or must not skip, a later cycle while
        it is idle with queued beats, register accesses or a deadline, and None if it is idle
        otherwise.
        """

    @property
    @abstractmethod
    def registers_pending(self) -> int:
        """Number of queued register accesses."""

    def close(self) -> None:
        """Free the instance's resources; do not use it afterwards."""
        return None

    @abstractmethod
    def _push(self, stream: str, payloads: np.ndarray, cycles: np.ndarray) -> None: ...
    @abstractmethod
    def _pop(self, stream: str) -> tuple[np.ndarray, np.ndarray]: ...
    @abstractmethod
    def _waiting(self, stream: str) -> int: ...
    @abstractmethod
    def _set_rate(self, stream: str, beat: int, packet: int, burst: int, last: int) -> None: ...
    @abstractmethod
    def _set_stall(self, stream: str, seed: int, threshold: int) -> None: ...
    @abstractmethod
    def _hold(self, stream: str, until: int) -> None: ...
    @abstractmethod
    def _last_beat(self) -> int | None: ...
    @abstractmethod
    def _crossed(self) -> tuple[np.ndarray, np.ndarray]: ...
    @abstractmethod
    def _set_signal(self, name: str, value: int) -> None: ...
    @abstractmethod
    def _get_signal(self, name: str) -> int: ...
    @abstractmethod
    def _set_reset(self, active: bool) -> None: ...
    @abstractmethod
    def _access(self, addr: int, data: int, cycle: int, is_write: bool) -> None: ...
    @abstractmethod
    def _pop_registers(self) -> list[tuple[int, int, int, int, int]]: ...
    @abstractmethod
    def _run(self, until: int) -> None: ...

    def _trace(self, sink: TraceSink, first: int, last: int) -> None:
        raise NotImplementedError

    def _end_trace(self) -> None:
        return None

    def _stream(self, name: str, *, is_input: bool) -> StreamPort:
        port = self.design.streams.get(name)
        if port is None or port.is_input != is_input:
            kind = "input stream" if is_input else "output stream"
            raise ValueError(self._unknown(kind, name, [
                n for n, p in self.design.streams.items() if p.is_input == is_input]))
        return port

    def _signal(self, name: str) -> SignalPort:
        if name not in self.design.signals:
            raise ValueError(self._unknown("signal", name, self.design.signals))
        return self.design.signals[name]

    def _check_access(self, addr: int, data: int) -> None:
        if not self.design.registers:
            raise ValueError("the design must have a port csr to access registers")
        bits = len(self.design.registers["awaddr"])
        if not 0 <= addr < 1 << bits:
            raise ValueError(f"addr must fit {bits} bits, not {addr!r}")
        if not 0 <= data < 1 << 32:
            raise ValueError(f"data must fit 32 bits, not {data!r}")

    @staticmethod
    def _unknown(kind: str, name: str, known) -> str:
        return f"{kind} must be one of {', '.join(known) or 'none'}, not {name!r}"


class Model(ABC):
    """A design ready to be instantiated any number of times."""

    def __init__(self, name: str, design: Design):
        self.name = name
        self.design = design

    @abstractmethod
    def instance(self, *, skip: bool = True, random_init: int | None = None) -> Engine:
        """Return a new instance, just out of reset.

        ``skip`` skips idle cycles. ``random_init`` seeds the contents of memories at power-up; with
        None they are zero.
        """
