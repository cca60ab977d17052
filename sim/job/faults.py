"""Faults of a run: parts of the cluster that fall silent, temporarily or permanently."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, inf

from host.timing.clock import cycles_of_us
from host.toml.units import quantity

__all__ = ["FORM", "PARTS", "Silence", "Windows", "node_of", "parse_silence", "time_of",
           "windows"]

PARTS = ("host", "gpu", "network")

FORM = "silent-PART=START:LENGTH[@NODE], such as silent-gpu=20us:1ms@2"


@dataclass(frozen=True)
class Silence:
    """A part of a node falls silent.

    Members
    -------
    part: ``host``: the host stops receiving from and sending to its NIC. ``gpu``: gathers do not
        complete. ``network``: the node's link stops accepting frames, as under pause frames of a
        MAC; frames on the wire arrive.
    start: microseconds after the first samples were handed out.
    length: microseconds of silence, ``inf`` if permanent.
    node: number of the node, None for every node.
    """

    part: str
    start: float
    length: float
    node: int | None = None


def parse_silence(entry: str, nodes: int) -> Silence:
    """Return the silence that ``entry``, ``silent-PART=START:LENGTH[@NODE]``, names.

    Times have a unit; without LENGTH the part stays silent. ``ValueError`` or ``TypeError`` for
    invalid text.
    """
    name, equals, value = entry.partition("=")
    part = name.removeprefix("silent-")
    window, at, node = value.partition("@")
    start, colon, length = window.partition(":")
    if not equals or not colon or part == name:
        raise ValueError(f"faults must be {FORM}, not {entry!r}")
    if part not in PARTS:
        raise ValueError(f"part of {name} must be one of {', '.join(PARTS)}, not {part!r}")
    number = node_of(name, node, nodes) if at else None
    if part == "network" and nodes < 2:
        raise ValueError(f"{name} must go with at least 2 nodes, not {nodes!r}")
    return Silence(part, time_of(name, "start", start),
                   time_of(name, "length", length) if length.strip() else inf, number)


def node_of(fault: str, text: str, nodes: int) -> int:
    """Return the node that ``text`` of ``fault`` names; ``ValueError`` if there is no such node."""
    if not (text.isascii() and text.isdigit() and int(text) < nodes):
        raise ValueError(f"node of {fault} must be between 0 and {nodes - 1}, not {text!r}")
    return int(text)


def time_of(fault: str, which: str, text: str) -> float:
    """Return the microseconds of ``text``, the ``start`` or ``length`` of ``fault``. ``ValueError``
    or ``TypeError`` for invalid text, and for a length of 0."""
    try:
        time = quantity(f"{which}_us", text)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{fault}: {error}") from None
    if time < 0 or (which == "length" and time == 0):
        low = "at least" if which == "start" else "above"
        raise ValueError(f"{which} of {fault} must be {low} 0 us, not {text!r}")
    return float(time)


class Windows:
    """Spans of cycles in which an action is blocked.

    Parameters: ``spans``, the first cycle of each and the cycle after its last (``inf`` for a span
    without end). Adjacent and overlapping spans are merged.
    """

    def __init__(self, spans: Iterable[tuple[float, float]] = ()):
        self.spans: list[tuple[float, float]] = []
        for first, end in sorted(spans):
            if self.spans and first <= self.spans[-1][1]:
                first, before = self.spans.pop()
                end = max(end, before)
            self.spans.append((first, end))

    def after(self, time: float) -> float:
        """Return ``time``, or the end of the span that contains it."""
        for first, end in self.spans:
            if first <= time < end:
                return end
        return time


def windows(faults: Iterable[Silence], part: str, node: int, start: int) -> Windows:
    """Return the cycles in which ``part`` of ``node`` is silent.

    ``start``: the cycle in which the first samples are handed out.
    """
    mine = [fault for fault in faults if fault.part == part and fault.node in (None, node)]
    return Windows((start + ceil(cycles_of_us(fault.start)),
                    start + ceil(cycles_of_us(fault.start + fault.length))
                    if fault.length < inf else inf) for fault in mine)
