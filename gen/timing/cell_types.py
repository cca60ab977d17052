"""Types of cells as arrays of pin numbers. Cells of a type have the same timing and connected pins.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gen.timing.cells import KINDS, CellTiming, Pin

__all__ = ["CellType", "CellTypes", "Paths", "TimingOf"]

TimingOf = Callable[[str, Mapping[str, str | int], Mapping[str, int]], CellTiming]
"""Signature of :func:`gen.timing.cells.timing_of`."""


class Paths(NamedTuple):
    """Arcs, launches or captures of a cell type, as arrays.

    Members
    -------
    pins: pin number: the target of an arc, the driven pin of a launch, or the pin of a capture.
    ps: delay inside the cell.
    nets: number of nets of fan-out 1 inside the cell; the case of nets adds their delay.
    sources: index into ``CellType.inputs``: the source of an arc, or the pin of a capture.
    kinds: kind of a capture, as an index into :data:`gen.timing.cells.KINDS`.
    """

    pins: NDArray[np.int32]
    ps: NDArray[np.float64]
    nets: NDArray[np.int32]
    sources: NDArray[np.int32]
    kinds: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class CellType:
    """Type of cells with the same timing and the same connected pins.

    Members
    -------
    name: type in the netlist, such as ``FDRE``.
    kind: kind of its timing, such as ``ff``; ``port`` for a port of the top.
    pins: connected pins; a pin's number is its index.
    inputs: numbers of the pins that load a net, without clocks.
    outputs: numbers of the pins that drive a net.
    clock: number of the first clock pin; -1 if missing.
    load_kinds: for each of ``inputs``, the kind of its capture as an index into ``KINDS``, or data.
    load_counts: for each of ``inputs``, the number of pins of primitives behind it.
    arcs, launches, captures, inner: see :class:`Paths`; inner paths have no pins.
    joins: pairs of pins that share a net. Placement merges a buffer or inverter with its load, so a
        buffer has joins and no inputs, outputs or arcs.
    """

    name: str
    kind: str
    pins: tuple[Pin, ...]
    inputs: NDArray[np.int32]
    outputs: NDArray[np.int32]
    clock: int
    load_kinds: NDArray[np.int32]
    load_counts: NDArray[np.int32]
    arcs: Paths
    launches: Paths
    captures: Paths
    inner: Paths
    joins: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, name: str, timing: CellTiming,
           ports: Iterable[tuple[str, int, bool]]) -> "CellType":
        """Return the type of cells with ``ports``: name, width, and whether the port is an output.
        """
        pins: list[Pin] = []
        inputs, outputs, clock = [], [], -1
        for port, width, output in ports:
            numbers = range(len(pins), len(pins) + width)
            pins += (Pin(port, bit) for bit in range(width))
            if port in timing.clocks:
                clock = numbers[0] if clock < 0 and width else clock
            elif output:
                outputs += numbers
            else:
                inputs += numbers
        number = {pin: place for place, pin in enumerate(pins)}
        joins: tuple[tuple[int, int], ...] = ()
        if timing.kind == "buffer":
            joins = tuple((number[arc.source], number[arc.target]) for arc in timing.arcs
                          if arc.source in number and arc.target in number)
            inputs, outputs = [], []
        place = {pins[pin]: place for place, pin in enumerate(inputs)}
        driven = {pins[pin] for pin in outputs}
        # An unconnected pin is not an end of a path.
        arcs = [arc for arc in timing.arcs if arc.source in place and arc.target in driven]
        launches = [launch for launch in timing.launches if launch.pin in driven]
        captures = [capture for capture in timing.captures if capture.pin in place]
        load_kinds = _array([KINDS.index("data")] * len(inputs))
        for capture in captures:
            load_kinds[place[capture.pin]] = KINDS.index(capture.kind)
        return cls(
            name, timing.kind, tuple(pins), _array(inputs), _array(outputs), clock, load_kinds,
            _array(timing.loads.get(pins[pin], 1) for pin in inputs),
            _paths(arcs, [number[arc.target] for arc in arcs], [place[arc.source] for arc in arcs]),
            _paths(launches, [number[launch.pin] for launch in launches]),
            _paths(captures, [number[capture.pin] for capture in captures],
                   [place[capture.pin] for capture in captures],
                   [KINDS.index(capture.kind) for capture in captures]),
            _paths(list(timing.inner), []), joins)


class CellTypes:
    """Registry of cell types. Cells that differ only in their content (``INIT``) share a type."""

    def __init__(self, timing_of: TimingOf):
        self._timing_of = timing_of
        self._types: dict[tuple, CellType] = {}

    def of(self, cell: Mapping[str, Any]) -> CellType:
        """Return the type of ``cell``, as Yosys writes it to JSON.

        Raises ``ValueError`` with the type's name if it has no timing.
        """
        directions = cell["port_directions"]
        widths = {port: len(bits) for port, bits in cell["connections"].items()}
        parameters = tuple((name, value) for name, value in cell.get("parameters", {}).items()
                           if not name.startswith("INIT"))
        key = cell["type"], parameters, tuple(widths.items())
        if key not in self._types:
            timing = self._timing_of(cell["type"], dict(parameters), widths)
            self._types[key] = CellType.of(cell["type"], timing, (
                (port, width, directions[port] == "output") for port, width in widths.items()))
        return self._types[key]


def _array(values: Iterable[int]) -> NDArray[np.int32]:
    return np.array(list(values), np.int32)


def _paths(entries: list, pins: list[int], sources: Iterable[int] = (),
           kinds: Iterable[int] = ()) -> Paths:
    return Paths(_array(pins), np.array([entry.ps for entry in entries], np.float64),
                 _array(entry.nets for entry in entries), _array(sources), _array(kinds))
