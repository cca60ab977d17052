"""Timing of a cell: arcs through it, launches and captures of its clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["KINDS", "Arc", "Capture", "CellTiming", "Inner", "Launch", "Pin", "number", "pins",
           "text"]

KINDS = ("data", "enable", "reset", "address", "write_enable", "control")
"""Functions of a captured pin. ``control`` is an input that selects an operation of a DSP or RAM.
"""


class Pin(NamedTuple):
    """Bit ``bit`` of port ``port``."""

    port: str
    bit: int = 0


class Arc(NamedTuple):
    """A combinational path of ``ps`` picoseconds and ``nets`` inner nets of fan-out 1."""

    source: Pin
    target: Pin
    ps: float
    nets: int = 0


class Launch(NamedTuple):
    """A launch: ``pin`` changes ``ps`` picoseconds and ``nets`` inner nets after the clock edge."""

    pin: Pin
    ps: float
    nets: int = 0


class Capture(NamedTuple):
    """A capture: ``pin`` must be stable ``ps`` picoseconds and ``nets`` inner nets before the clock
    edge.

    A negative ``ps`` allows a later change. ``kind`` is one of :data:`KINDS`.
    """

    pin: Pin
    ps: float
    kind: str
    nets: int = 0


class Inner(NamedTuple):
    """A path between the cell's own registers, of ``ps`` picoseconds and ``nets`` inner nets."""

    ps: float
    nets: int = 0


@dataclass(frozen=True)
class CellTiming:
    """Timing of a cell, in picoseconds.

    Members
    -------
    kind: "lut", "mux", "carry", "ff", "shift", "lutram", "bram", "uram", "dsp", "buffer" or
        "constant".
    clocks: ports without data.
    arcs, launches, captures: see their classes.
    inner: paths between the cell's own registers, which bound the period.
    loads: by port, the number of pins of primitives behind a bit, if more than one.
    """

    kind: str
    arcs: tuple[Arc, ...] = ()
    launches: tuple[Launch, ...] = ()
    captures: tuple[Capture, ...] = ()
    clocks: tuple[str, ...] = ()
    inner: tuple[Inner, ...] = ()
    loads: Mapping[Pin, int] = field(default_factory=dict)


def pins(port: str, widths: Mapping[str, int]) -> list[Pin]:
    """Return the pins of ``port``; empty if it is not connected."""
    return [Pin(port, bit) for bit in range(widths.get(port, 0))]


def number(parameters: Mapping[str, str | int], name: str, default: int) -> int:
    """Return parameter ``name``, a number or binary digits by Yosys. Raises ``ValueError`` for
    other values."""
    value = parameters.get(name, default)
    try:
        return value if isinstance(value, int) else int(value, 2)
    except ValueError:
        raise ValueError(f"parameter {name} must be a number, not {value!r}") from None


def text(parameters: Mapping[str, str | int], name: str, default: str, *allowed: str) -> str:
    """Return parameter ``name`` without Yosys's trailing blanks. Raises ``ValueError`` if it is not
    in ``allowed``."""
    value = str(parameters.get(name, default)).strip()
    if value not in allowed:
        raise ValueError(f"parameter {name} must be one of {', '.join(allowed)}, not {value!r}")
    return value
