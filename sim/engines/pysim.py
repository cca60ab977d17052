"""The pysim engine: runs a design on Amaranth's simulator, cycle for cycle as the harness does."""

from bisect import insort

import numpy as np
from amaranth.hdl import ClockDomain, Fragment, Module, Signal
from amaranth.lib import wiring
from amaranth.sim import Simulator

from gen.verilog.collector import collect_later
from sim.engines.design import AXI_MEMBERS, Design, describe
from sim.engines.engine import (
    CHANNEL_PORTS,
    FRACTION,
    NS_PER_CYCLE,
    RESET_CYCLES,
    Engine,
    Model,
)
from sim.engines.trace import TraceSink
from sim.engines.trace_pysim import PysimTrace

__all__ = ["PysimModel", "RandomMemories"]

_MASK = (1 << 64) - 1
_NEVER = _MASK
_SETTLE = 2


class PysimModel(Model):
    """A component, elaborated for each instance separately."""

    def __init__(self, name: str, component: wiring.Component, traced: bool = False):
        super().__init__(name, describe(component))
        self.component = component
        self.traced = traced

    @classmethod
    def load(cls, component: wiring.Component, name: str, recipe: str | None = None,
             traced: bool = False) -> "PysimModel":
        """Return the model of ``component``. Nothing is cached, and ``recipe`` has no effect."""
        del recipe
        return cls(name, component, traced)

    def instance(self, *, skip: bool = True, random_init: int | None = None) -> "PysimEngine":
        """Return a new instance, just out of reset."""
        return PysimEngine(self.component, self.design, skip, random_init, self.traced)


class RandomMemories:
    """Platform that gives every :class:`rtl.memory.Ram` random initial contents."""

    def __init__(self, seed: int):
        self._random = np.random.default_rng(seed)

    def ram_contents(self, ram) -> list[int]:
        """Return the words of ``ram`` at power-up."""
        return [int.from_bytes(self._random.bytes(-(-ram.width // 8)), "little")
                & (1 << ram.width) - 1 for _ in range(ram.depth)]


def _mix(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


class _Stream:
    """The harness's state of a stream, in either direction."""

    def __init__(self, port):
        self.port = port
        self.beats: list[int] = []
        self.cycles: list[int] = []
        self.head = 0
        self.offering = False
        self.seed = self.threshold = 0
        self.beat_cost = self.packet_cost = self.burst = self.link_free = self.held_until = 0
        self.last_bit = -1

    def due(self) -> int:
        return self.cycles[self.head] if self.head < len(self.cycles) else _NEVER

    def stalled(self, cycle: int) -> bool:
        return bool(self.threshold) and _mix(self.seed ^ _mix(cycle)) >> 32 < self.threshold

    def open(self, cycle: int) -> bool:
        return (self.link_free <= cycle * FRACTION + self.burst and cycle >= self.held_until
                and not self.stalled(cycle))

    def take(self, cycle: int, payload: int) -> None:
        self.beats.append(payload)
        self.cycles.append(cycle)
        if self.beat_cost or self.packet_cost:
            earliest = (cycle - 1) * FRACTION + 1 if cycle else 0
            self.link_free = max(self.link_free, earliest) + self.beat_cost
            if self.last_bit >= 0 and payload >> self.last_bit & 1:
                self.link_free += self.packet_cost


class PysimEngine(Engine):
    """One instance. It performs the steps of ``harness.cpp``, in the same order."""

    def __init__(self, component: wiring.Component, design: Design, skip: bool,
                 seed: int | None, traced: bool = False):
        super().__init__(design)
        self._domain = ClockDomain("sync", reset_less="rst" in component.signature.members)
        top = Module()
        top.domains += self._domain
        platform = None if seed is None else RandomMemories(seed)
        # As in the wrapper of a compiled design, the reset is driven by a register. The register
        # also uses the clock domain: the simulator omits unused domains.
        self._reset, held = Signal(init=1), Signal(init=1, reset_less=True)
        reset = getattr(component, "rst", self._domain.rst)
        top.d.sync += held.eq(self._reset)
        top.d.comb += reset.eq(held)
        with collect_later():
            top.submodules.design = Fragment.get(component, platform)
            simulator = Simulator(top)

        async def grab(ctx):
            self._ctx = ctx

        simulator.add_testbench(grab)
        self._tracer: PysimTrace | None = None
        if traced:
            self._tracer = PysimTrace(simulator, NS_PER_CYCLE)
            self.trace_scopes = ("bench", "top", "design")
        simulator.run()
        self._streams = {name: _Stream(port) for name, port in design.streams.items()}
        self._inputs = [s for s in self._streams.values() if s.port.is_input]
        self._outputs = [s for s in self._streams.values() if not s.port.is_input]
        self._idle = design.signals.get("idle") if skip else None
        self._time = design.signals.get("time")
        self._alarm = [design.signals[name] for name in ("waits", "deadline")
                       if name in design.signals]
        self._handshakes = [design.signals[port].value for port in CHANNEL_PORTS
                            if self._channels]
        self._beats = np.zeros(self._channels, np.int64)
        self._last = np.full(self._channels, -1, np.int64)
        self._moved: int | None = None
        self._ops: list[tuple[int, int, int, bool]] = []
        self._answers: list[tuple[int, int, int, int, int]] = []
        self._busy = self._address_done = self._data_done = False
        self._now = self._reached = self._evaluated = 0
        self._asleep = self._resetting = False
        for cycle in range(RESET_CYCLES + 1):
            self._ctx.set(self._reset, cycle < RESET_CYCLES)
            self._edge()

    @property
    def cycle(self) -> int:
        return self._reached

    @property
    def cycles_run(self) -> int:
        return self._evaluated

    @property
    def registers_pending(self) -> int:
        return len(self._ops)

    @property
    def next_event(self) -> int | None:
        if not self._asleep:
            return self._reached
        due = self._next_due()
        return None if due == _NEVER else max(due, self._reached)

    trace_strings = True

    def _trace(self, sink: TraceSink, first: int, last: int) -> None:
        if self._tracer is not None:
            self._tracer.window(sink, first, last)

    def _end_trace(self) -> None:
        if self._tracer is not None:
            self._tracer.close(self._reached)
            self._tracer = None

    def close(self) -> None:
        self._end_trace()

    def _edge(self) -> None:
        self._ctx.set(self._domain.clk, 1)
        if self._tracer is not None:
            self._tracer.fall(self._now)
        self._ctx.set(self._domain.clk, 0)

    def _next_due(self) -> int:
        due = 0 if self._busy else (self._ops[0][2] if self._ops else _NEVER)
        return min([due, self._next_alarm(),
                    *(0 if s.offering else s.due() for s in self._inputs)])

    def _next_alarm(self) -> int:
        """The cycle in which an idle design moves by itself; a past deadline counts as the current
        cycle."""
        if not self._alarm or not self._ctx.get(self._alarm[0].value):
            return _NEVER
        ahead = (self._ctx.get(self._alarm[1].value) - self._now) & 0xFFFFFFFF
        return self._now + ahead if 0 < ahead < 1 << 31 else 0

    def _wake(self, cycle: int) -> None:
        self._now = max(self._now, cycle - _SETTLE)
        self._asleep = False

    def _run(self, until: int) -> None:
        if until <= self._reached:
            return
        self._reached = until
        while True:
            if self._asleep:
                due = self._next_due()
                if due >= until:
                    return
                self._wake(due)
            if self._now >= until:
                return
            if self._step() and self._next_due() > self._now:
                self._asleep = True

    def _put(self, signal, value: int) -> None:
        # The simulator settles after every set, even to the same value.
        if self._ctx.get(signal) != value:
            self._ctx.set(signal, value)

    def _step(self) -> bool:
        get, put, cycle = self._ctx.get, self._put, self._now
        if self._tracer is not None:
            self._tracer.enter(cycle)
        quiet = self._idle is not None and not self._resetting
        if self._time is not None:
            put(self._time.value, cycle & 0xFFFFFFFF)
        for stream in self._inputs:
            if not stream.offering:
                if stream.due() > cycle or stream.stalled(cycle):
                    continue
                put(stream.port.payload, stream.beats[stream.head])
                put(stream.port.valid, 1)
                stream.offering = True
            quiet = False
        for stream in self._outputs:
            put(stream.port.ready, stream.open(cycle))
        self._drive_access(cycle)
        for stream in self._outputs:
            if get(stream.port.valid):
                quiet = False
                if get(stream.port.ready):
                    stream.take(cycle, get(stream.port.payload))
        for stream in self._inputs:
            if stream.offering and get(stream.port.ready):
                stream.offering = False
                stream.head += 1
        if self._handshakes:
            self._sample_channels(cycle)
        seen = self._sample_access() if self._busy else None
        # A deadline counts as an input that moves in its cycle.
        quiet = (quiet and seen is None and bool(get(self._idle.value))
                 and self._next_alarm() != 0)
        if self._tracer is not None:
            self._tracer.rise(cycle)
        self._edge()
        for stream in self._inputs:
            if not stream.offering and get(stream.port.valid):
                put(stream.port.valid, 0)
        if seen is not None:
            self._finish_access(seen, cycle)
        self._now += 1
        self._evaluated += 1
        return quiet

    def _sample_channels(self, cycle: int) -> None:
        valid, ready = map(self._ctx.get, self._handshakes)
        moving = valid & ready
        if moving:
            self._moved = cycle
        while moving:
            at = (moving & -moving).bit_length() - 1
            self._beats[at] += 1
            self._last[at] = cycle
            moving &= moving - 1

    def _drive_access(self, cycle: int) -> None:
        if self._busy or not self._ops or self._ops[0][2] > cycle:
            return
        addr, data, _cycle, is_write = self._ops[0]
        self._busy, self._address_done, self._data_done = True, False, False
        driven = ({"awaddr": addr, "wdata": data, "wstrb": 15, "awvalid": 1, "wvalid": 1,
                   "bready": 1} if is_write else {"araddr": addr, "arvalid": 1, "rready": 1})
        for member, value in driven.items():
            self._ctx.set(self.design.registers[member], value)

    def _sample_access(self) -> dict[str, int]:
        seen = {member: self._ctx.get(self.design.registers[member]) for member in AXI_MEMBERS}
        is_write = self._ops[0][3]
        return {
            "address": not self._address_done and seen["awready" if is_write else "arready"],
            "data": is_write and not self._data_done and seen["wready"],
            "done": seen["bvalid" if is_write else "rvalid"],
            "value": seen["rdata"], "resp": seen["bresp" if is_write else "rresp"]}

    def _finish_access(self, seen: dict[str, int], cycle: int) -> None:
        addr, data, _cycle, is_write = self._ops[0]
        registers, put = self.design.registers, self._ctx.set
        if seen["address"]:
            self._address_done = True
            put(registers["awvalid" if is_write else "arvalid"], 0)
        if seen["data"]:
            self._data_done = True
            put(registers["wvalid"], 0)
        if seen["done"]:
            put(registers["bready" if is_write else "rready"], 0)
            value = data if is_write else seen["value"]
            self._answers.append((cycle, addr, value, seen["resp"], int(is_write)))
            del self._ops[0]
            self._busy = False

    def _push(self, stream: str, payloads: np.ndarray, cycles: np.ndarray) -> None:
        target = self._streams[stream]
        target.beats += [int.from_bytes(row.tobytes(), "little") for row in payloads]
        target.cycles += [max(int(cycle), self._reached) for cycle in cycles]

    def _pop(self, stream: str) -> tuple[np.ndarray, np.ndarray]:
        source = self._streams[stream]
        raw = b"".join(beat.to_bytes(4 * source.port.words, "little") for beat in source.beats)
        payloads = np.frombuffer(raw, dtype="<u4").reshape(-1, source.port.words).copy()
        cycles = np.array(source.cycles, dtype=np.uint64)
        source.beats, source.cycles = [], []
        return payloads, cycles

    def _waiting(self, stream: str) -> int:
        return len(self._streams[stream].cycles) - self._streams[stream].head

    def _set_rate(self, stream: str, beat: int, packet: int, burst: int, last: int) -> None:
        target = self._streams[stream]
        target.beat_cost, target.packet_cost = beat, packet
        target.burst, target.last_bit = burst, last
        if not (beat or packet):
            target.link_free = 0

    def _set_stall(self, stream: str, seed: int, threshold: int) -> None:
        self._streams[stream].seed, self._streams[stream].threshold = seed, threshold

    def _hold(self, stream: str, until: int) -> None:
        self._streams[stream].held_until = until

    def _last_beat(self) -> int | None:
        return self._moved

    def _crossed(self) -> tuple[np.ndarray, np.ndarray]:
        return self._beats.copy(), self._last.copy()

    def _touch(self) -> None:
        """Evaluate up to this cycle with the old value of an input outside the streams."""
        if self._asleep:
            self._wake(self._reached)
            while self._now < self._reached:
                self._step()

    def _set_reset(self, active: bool) -> None:
        self._touch()
        self._resetting = active
        self._ctx.set(self._reset, active)

    def _set_signal(self, name: str, value: int) -> None:
        self._touch()
        self._ctx.set(self.design.signals[name].value, value)

    def _get_signal(self, name: str) -> int:
        port = self.design.signals[name]
        return self._ctx.get(port.value) & (1 << port.width) - 1

    def _access(self, addr: int, data: int, cycle: int, is_write: bool) -> None:
        due = max(cycle, self._reached)
        insort(self._ops, (addr, data, due, is_write), key=lambda op: op[2])

    def _pop_registers(self) -> list[tuple[int, int, int, int, int]]:
        answers, self._answers = self._answers, []
        return answers
