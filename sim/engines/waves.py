"""Waveforms of a run: the traced node, the window of cycles, and the file."""

import re
from dataclasses import dataclass
from pathlib import Path

from sim.engines import ENGINES, Engine
from sim.engines.load import TRACED
from sim.engines.trace import SUFFIXES, TraceFile
from sim.files.outputs import check_writable

__all__ = ["WINDOW", "Waves", "WavesOptions"]

WINDOW = 10_000
"""Default number of cycles of a trace (40 us)."""

_CYCLE = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True)
class WavesOptions:
    """Options of the trace of a run.

    Members
    -------
    path: the file, ``.fst`` or ``.vcd``.
    node: number of the node.
    first, last: cycles, both included, counted from the end of reset. ``first`` None is the cycle
        in which the hosts get their first samples.
    """

    path: str
    node: int = 0
    first: int | None = None
    last: int | None = None

    @classmethod
    def of(cls, path: str | None, node: int | None, window: str | None, nodes: int,
           engine: str) -> "WavesOptions | None":
        """Return the options given on the command line, None without ``path``.

        window: ``FIRST:LAST``; either may be left out.
        nodes, engine: of the run.

        ``ValueError`` for invalid options.
        """
        if path is None:
            for name, value in (("waves_node", node), ("waves_window", window)):
                if value is not None:
                    raise ValueError(f"{name} {value!r} requires waves: give waves, too")
            return None
        if Path(path).suffix not in SUFFIXES:
            raise ValueError(f"waves must end in {' or '.join(SUFFIXES)}, not {path!r}")
        if engine in ENGINES and engine not in TRACED:
            raise ValueError(f"engine must be one of {', '.join(TRACED)} for waves, "
                             f"not {engine!r}")
        if node is not None and not 0 <= node < nodes:
            raise ValueError(f"waves_node must be between 0 and {nodes - 1}, not {node!r}")
        first, last = _window(window)
        return cls(path, node or 0, first, last)


def _window(text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    parts = text.split(":")
    if len(parts) != 2 or any(part and not _CYCLE.fullmatch(part) for part in parts):
        raise ValueError(f"waves_window must be FIRST:LAST, numbers of cycles, not {text!r}")
    first, last = (int(part) if part else None for part in parts)
    if first is not None and last is not None and last < first:
        raise ValueError(f"waves_window must end at cycle {first} or later, not {text!r}")
    return first, last


class Waves:
    """The trace of one node of a run.

    Parameters: ``options``, and the ``engine`` of the node, just out of reset. The file is opened
        by the constructor if the window's start is given, else by :meth:`begin`; ``OSError`` if
        that fails.
    """

    def __init__(self, options: WavesOptions, engine: Engine):
        self._options = options
        self._engine = engine
        self._file: TraceFile | None = None
        self._window = (0, 0)
        check_writable(options.path, "waves")
        if Path(options.path).is_fifo():
            # Writers of waveforms seek in their file, which a pipe does not support.
            raise ValueError(f"waves must be a file, not the pipe {options.path!r}")
        if options.first is not None:
            self._open(options.first)

    def begin(self, cycle: int) -> None:
        """Open the window, unless open, at ``cycle``, when the hosts get their first samples."""
        if self._file is None:
            self._open(cycle)

    def _open(self, first: int) -> None:
        options, engine = self._options, self._engine
        last = first + WINDOW - 1 if options.last is None else options.last
        if last < first:
            raise ValueError(f"waves_window must end at cycle {first} (first samples) or later, "
                             f"not {last}")
        self._window = (first, last)
        self._file = TraceFile(options.path, engine.trace_scopes, f"node{options.node}",
                               engine.trace_strings)
        engine.trace(self._file, first, last)

    def close(self) -> None:
        """Complete the file. A second call has no effect."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            self._engine.end_trace()
        finally:
            file.close()

    def summary(self) -> str:
        """Return a line that describes the contents of the file."""
        first, last = self._window
        end = min(last, self._engine.cycle - 1)
        if end < first:
            return (f"waves: {self._options.path} is empty: the window begins at cycle "
                    f"{first:,}, the run ended at cycle {end:,}")
        return (f"waves: {self._options.path} contains cycles {first:,} to {end:,} of node "
                f"{self._options.node}")
