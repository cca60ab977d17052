"""Timing of a cell: arcs through it, launches and captures of its clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["KINDS", "Arc", "Capture", "CellTiming", "Inner", "Launch", "Pin", "number", "pins",
           "text"]

KINDS = ("data", "enable", "reset", "address", "write_enable", "control")
"""What a capture is for. ``control`` is an input that selects what a DSP or RAM does."""


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
    """``pin`` changes ``ps`` picoseconds and ``nets`` inner nets after the clock's edge."""

    pin: Pin
    ps: float
    nets: int = 0


class Capture(NamedTuple):
    """``pin`` must be stable ``ps`` picoseconds and ``nets`` inner nets before the clock's edge.

    A negative ``ps`` lets it come later. ``kind`` is one of :data:`KINDS`.
    """

    pin: Pin
    ps: float
    kind: str
    nets: int = 0


class Inner(NamedTuple):
    """A path from the cell's own registers to its own registers, of ``ps`` and ``nets`` nets."""

    ps: float
    nets: int = 0


@dataclass(frozen=True)
class CellTiming:
    """Timing of a cell, in picoseconds.

    ``kind`` is "lut", "mux", "carry", "ff", "shift", "lutram", "bram", "uram", "dsp", "buffer" or
    "constant". ``clocks`` are ports at which no data arrive. ``inner`` bounds the period without
    any pin. ``loads`` has, by port, the pins behind one of its bits where there are more than one:
    a box of several primitives loads its drivers as they do.
    """

    kind: str
    arcs: tuple[Arc, ...] = ()
    launches: tuple[Launch, ...] = ()
    captures: tuple[Capture, ...] = ()
    clocks: tuple[str, ...] = ()
    inner: tuple[Inner, ...] = ()
    loads: Mapping[Pin, int] = field(default_factory=dict)


def pins(port: str, widths: Mapping[str, int]) -> list[Pin]:
    """Return the pins of ``port``; none if it is not connected."""
    return [Pin(port, bit) for bit in range(widths.get(port, 0))]


def number(parameters: Mapping[str, str | int], name: str, default: int) -> int:
    """Return parameter ``name``, a number or the binary digits that Yosys writes.

    ``ValueError`` if it is neither.
    """
    value = parameters.get(name, default)
    try:
        return value if isinstance(value, int) else int(value, 2)
    except ValueError:
        raise ValueError(f"parameter {name} must be a number, not {value!r}") from None


def text(parameters: Mapping[str, str | int], name: str, default: str, *allowed: str) -> str:
    """Return parameter ``name`` without the blanks that Yosys puts behind it.

    ``ValueError`` if it is none of ``allowed``.
    """
    value = str(parameters.get(name, default)).strip()
    if value not in allowed:
        raise ValueError(f"parameter {name} must be one of {', '.join(allowed)}, not {value!r}")
    return value
