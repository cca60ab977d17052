"""Traces of instances on Amaranth's simulator, whose own VCD writer does the work."""

import io
from contextlib import ExitStack

from amaranth.sim import Simulator

from sim.engines.engine import NS_PER_CYCLE
from sim.engines.trace import TraceSink

__all__ = ["Clockwork", "PysimTrace"]

_FS_PER_NS = 10**6
"""Amaranth writes times in femtoseconds."""


class Clockwork:
    """Moves the time of ``simulator``, which an engine never does but in a trace."""

    def __init__(self, simulator: Simulator):
        self._simulator = simulator
        self._wait = 0
        self.now = 0
        simulator.add_testbench(self._tick, background=True)

    async def _tick(self, ctx) -> None:
        while True:
            await ctx.delay(self._wait * 1e-9)

    def to(self, ns: int) -> None:
        """Let the time be ``ns``; nothing where it is that already."""
        if ns > self.now:
            self._wait, self.now = ns - self.now, ns
            self._simulator.advance()


class PysimTrace:
    """A trace of cycles ``first`` to ``last``, as :meth:`sim.engines.Engine.trace` has it."""

    def __init__(self, simulator: Simulator, clockwork: Clockwork, sink: TraceSink, first: int,
                 last: int):
        self._simulator, self._clockwork = simulator, clockwork
        self._first, self._last = first, last
        self._text = _Text(sink, first * NS_PER_CYCLE * _FS_PER_NS)
        self._stack = ExitStack()
        self._begun = self._ended = False

    def enter(self, cycle: int) -> None:
        """Call before anything of ``cycle`` happens."""
        if self._ended or cycle < self._first:
            return
        if cycle > self._last:
            self._end(self._last + 1)
            return
        if not self._begun:
            self._begun = True
            self._stack.enter_context(self._simulator.write_vcd(self._text))
            self._clockwork.to(self._first * NS_PER_CYCLE)
        self._clockwork.to(cycle * NS_PER_CYCLE)

    def rise(self, cycle: int) -> None:
        """Call before the clock rises in ``cycle``."""
        if self._begun and not self._ended:
            self._clockwork.to(cycle * NS_PER_CYCLE + NS_PER_CYCLE // 2)

    def close(self, reached: int) -> None:
        """Write what is left; ``reached`` is the first cycle that was not run."""
        if not self._ended:
            self._end(min(reached, self._last + 1))
        self._text.flush()

    def _end(self, cycle: int) -> None:
        self._ended = True
        if self._begun:
            self._clockwork.to(cycle * NS_PER_CYCLE)
            self._stack.close()


class _Text(io.TextIOBase):
    """What Amaranth writes, in pieces of some size and with the right time of the first values."""

    def __init__(self, sink: TraceSink, start: int):
        self._sink = sink
        self._start: int | None = start
        self._lines: list[str] = []
        self._size = 0

    def write(self, text: str) -> int:
        if self._start is not None and text.startswith("#0"):
            text, self._start = f"#{self._start}{text[2:]}", None
        self._lines.append(text)
        self._size += len(text)
        if self._size > 1 << 16:
            self.flush()
        return len(text)

    def flush(self) -> None:
        self._sink.write("".join(self._lines).encode())
        self._lines, self._size = [], 0
