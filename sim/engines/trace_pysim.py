"""Traces of pysim instances, made with Amaranth's VCD writer."""

from contextlib import ExitStack

from amaranth.sim import Simulator

from sim.engines.trace import TraceSink

__all__ = ["PysimTrace"]

_FS_PER_NS = 10**6
"""Amaranth's files count femtoseconds."""


class PysimTrace:
    """Observer of every signal of ``simulator``, which writes a window of cycles.

    Amaranth's writer must be attached from the beginning. The engine does not advance the
    simulator's time: deltas separate changes. This class inserts the times of the file, at
    ``ns_per_cycle`` per cycle. See :meth:`sim.engines.Engine.trace`.
    """

    def __init__(self, simulator: Simulator, ns_per_cycle: int):
        self._cycle_fs = ns_per_cycle * _FS_PER_NS
        self._first = self._last = -1
        self._text = _Text()
        self._stack = ExitStack()
        self._stack.enter_context(simulator.write_vcd(self._text, fs_per_delta=1))
        self._begun = False

    def window(self, sink: TraceSink, first: int, last: int) -> None:
        """Write cycles ``first`` to ``last``, both included, to ``sink``."""
        self._first, self._last = first, last
        self._text.sink = sink

    def enter(self, cycle: int) -> None:
        """Begin ``cycle``. Call it before any signal changes in the cycle."""
        if self._begun and cycle > self._last:  # the window's end was skipped
            self.close(cycle)
        elif not self._begun and self._first <= cycle <= self._last:
            self._begun = True
            self._text.begin(self._first * self._cycle_fs)
        self._text.now = cycle * self._cycle_fs

    def rise(self, cycle: int) -> None:
        """Note the rising clock edge of ``cycle``. Call it before the clock rises."""
        self._text.now = cycle * self._cycle_fs + self._cycle_fs // 2

    def fall(self, cycle: int) -> None:
        """Note the falling clock edge at the end of ``cycle``. Call it before the clock falls."""
        if self._begun and cycle >= self._last:
            self.close(cycle + 1)
        self._text.now = (cycle + 1) * self._cycle_fs

    def close(self, reached: int) -> None:
        """End the trace; ``reached`` is the first cycle that was not run."""
        if self._text.sink is not None:
            end = min(reached, self._last + 1) if self._begun else None
            self._text.end(None if end is None else end * self._cycle_fs)
        self._begun = False
        self._first = self._last = -1
        self._stack.close()


class _Text:
    """File to which Amaranth writes. Before the window it keeps the definitions and the last value
    of every variable; in the window it passes the text to ``sink`` in larger pieces, with new
    times."""

    def __init__(self) -> None:
        self.sink: TraceSink | None = None
        self.now = 0
        self._definitions: list[str] = []
        self._defined = False
        self._values: dict[str, str] = {}
        self._stamp: int | None = None
        self._pieces: list[str] = []
        self._size = 0

    def write(self, text: str) -> int:
        size = len(text)
        stamped = text.startswith("#")
        if stamped:
            text = text.partition("\n")[2]
        if self._stamp is None:
            self._keep(text)
            return size
        if stamped and self.now != self._stamp:
            self._stamp = self.now
            text = f"#{self.now}\n{text}"
        self._put(text)
        return size

    def flush(self) -> None:
        """Do nothing: pieces are sent when they are large enough."""

    def begin(self, stamp: int) -> None:
        """Write the definitions and all values at time ``stamp``."""
        self._stamp = stamp
        self._put("\n".join((*self._definitions, f"#{stamp}", "$dumpvars", *self._values.values(),
                             "$end", "")))

    def end(self, stamp: int | None) -> None:
        """Write the rest, up to time ``stamp``. The definitions are always written."""
        if self._stamp is None:
            self._put("\n".join((*self._definitions, "")))
        elif stamp is not None and stamp != self._stamp:
            self._put(f"#{stamp}\n")
        self._send()
        self.sink, self._stamp = None, None

    def _keep(self, text: str) -> None:
        for line in text.splitlines():
            if not self._defined:
                self._definitions.append(line)
                self._defined = line.startswith("$enddefinitions")
            elif not line.startswith("$"):
                words = line.split()
                self._values[words[1] if len(words) > 1 else line[1:]] = line

    def _put(self, text: str) -> None:
        self._pieces.append(text)
        self._size += len(text)
        if self._size > 1 << 16:
            self._send()

    def _send(self) -> None:
        if self.sink is not None:
            self.sink.write("".join(self._pieces).encode())
        self._pieces, self._size = [], 0
