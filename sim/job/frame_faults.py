"""Faults of frames between NICs: lost, duplicate, reordered, corrupt or late; links down."""

from dataclasses import dataclass
from enum import IntEnum
from math import ceil, inf
from typing import NamedTuple

from host.timing.clock import cycles_of_us
from host.toml.units import quantity
from rtl.formats import Opcode

__all__ = ["ANY", "FOREVER", "FORM", "OPCODES", "FaultKind", "FrameFault", "FrameRule",
           "Injected", "parse_frame_faults", "rule_of"]

FORM = "KIND[-OPCODE]=RATE or #N[:TIME][@LINK], such as drop-vectors=1e-3@0>1 or corrupt=#3"

ANY = 0xFFFFFFFF
"""Source, destination or opcode of a rule that applies to all."""

FOREVER = (1 << 64) - 1
"""End of an unbounded span of cycles, and the threshold of rate 1."""

Injected = dict[tuple[int, int, int, int], int]
"""Number of frames by kind of fault, source, destination and opcode."""

OPCODES = {opcode.name.lower(): int(opcode) for opcode in Opcode if opcode < Opcode.QUERIES}
"""Opcodes of frames between NICs."""

_LONGEST_US = 1e6
_REORDER_US = 2.0


class FaultKind(IntEnum):
    """Kind of fault of a frame."""

    DROP = 0
    DUPLICATE = 1
    REORDER = 2
    CORRUPT = 3
    DELAY = 4
    DOWN = 5


@dataclass(frozen=True)
class FrameFault:
    """A fault of frames between NICs.

    Members
    -------
    kind: ``DROP``: the frame is lost. ``DUPLICATE``: a copy follows the frame. ``REORDER``: the
        frame is late by 1 cycle to ``time_us``, drawn per frame, and later frames may overtake it.
        ``CORRUPT``: a random bit is flipped. ``DELAY``: the frame is late by ``time_us``.
        ``DOWN``: frames that leave within ``length_us`` of ``start_us`` after the first samples
        are lost; ``inf`` means permanently.
    source, destination, opcode: of the frames; None for any.
    rate: probability per frame.
    frames: replaces ``rate``: spans of frame numbers, both ends included, counted from 1 per
        source, destination and, if given, opcode.
    """

    kind: FaultKind
    source: int | None = None
    destination: int | None = None
    opcode: int | None = None
    rate: float = 0.0
    frames: tuple[tuple[int, int], ...] = ()
    time_us: float = 0.0
    start_us: float = 0.0
    length_us: float = inf


class FrameRule(NamedTuple):
    """A :class:`FrameFault` in integers, for exchanges.

    Members: ``kind``; ``source``, ``destination``, ``opcode``, or :data:`ANY`; ``threshold``, below
    which a draw of 64 bits is a hit, and :data:`FOREVER` if every draw is; ``cycles`` of the delay;
    ``first`` and ``end`` of the cycles without a link; ``frames``.
    """

    kind: int
    source: int
    destination: int
    opcode: int
    threshold: int
    cycles: int
    first: int
    end: int
    frames: tuple[tuple[int, int], ...]


def rule_of(fault: FrameFault, start: int) -> FrameRule:
    """Return the rule of ``fault`` in a run that hands out its first samples in cycle ``start``."""
    def given(value: int | None) -> int:
        return ANY if value is None else value

    down = fault.kind == FaultKind.DOWN
    return FrameRule(
        int(fault.kind), given(fault.source), given(fault.destination), given(fault.opcode),
        min(int(fault.rate * 2.0 ** 64), FOREVER), ceil(cycles_of_us(fault.time_us)),
        start + ceil(cycles_of_us(fault.start_us)) if down else 0,
        start + ceil(cycles_of_us(fault.start_us + fault.length_us))
        if down and fault.length_us < inf else FOREVER, fault.frames)


def parse_frame_faults(entry: str, nodes: int) -> tuple[FrameFault, ...]:
    """Return the faults that one ``entry`` of the command line names, one for each direction.

    ``KIND[-OPCODE]=HOW[@LINK]``. HOW is ``RATE[:TIME]`` or ``#N[:TIME]``, N being numbers and spans
    such as ``3+7-9``; of ``down``, ``START:LENGTH``. LINK is ``0>1``, ``0>`` or ``>1`` (one end
    given), ``0<>1`` (both directions) or ``2`` (from and to node 2). ``ValueError`` or
    ``TypeError`` for invalid text.
    """
    name, _, value = entry.partition("=")
    word, dash, opcode = name.partition("-")
    kind = FaultKind[word.upper()]
    if dash and opcode.lower() not in OPCODES:
        raise ValueError(f"opcode of {word} must be one of {', '.join(OPCODES)}, not {opcode!r}")
    if nodes < 2:
        raise ValueError(f"{name} must go with at least 2 nodes, not {nodes!r}")
    how, at, link = value.partition("@")
    fields = _down(name, how) if kind == FaultKind.DOWN else _how(kind, name, how)
    return tuple(FrameFault(kind, source, destination, OPCODES[opcode.lower()] if dash else None,
                            **fields)
                 for source, destination in (_ends(name, link, nodes) if at else [(None, None)]))


def _how(kind: FaultKind, name: str, text: str) -> dict:
    how, colon, time = text.partition(":")
    fields = {"frames": _numbers(name, how[1:])} if how[:1] == "#" else {"rate": _rate(name, how)}
    if kind in (FaultKind.REORDER, FaultKind.DELAY):
        if not colon and kind == FaultKind.DELAY:
            raise ValueError(f"time of {name} must be given, such as {name}=0.1:2us, not {text!r}")
        fields["time_us"] = _time(name, "time", time) if colon else _REORDER_US
    elif colon:
        raise ValueError(f"time of {name} must be left out, not {time!r}")
    return fields


def _down(name: str, text: str) -> dict:
    start, colon, length = text.partition(":")
    if not colon:
        raise ValueError(f"{name} must be START:LENGTH, such as {name}=20us:1ms, not {text!r}")
    return {"start_us": _time(name, "start", start, low=0),
            "length_us": _time(name, "length", length) if length.strip() else inf}


def _rate(name: str, text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise ValueError(f"rate of {name} must be a number between 0 and 1, or # and numbers of "
                         f"frames, not {text!r}")
    return rate


def _numbers(name: str, text: str) -> tuple[tuple[int, int], ...]:
    spans = []
    for part in text.split("+"):
        first, dash, last = part.partition("-")
        ends = first, last if dash else first
        if not all(end.isascii() and end.isdigit() and len(end) < 19 for end in ends):
            raise ValueError(f"frames of {name} must be numbers and spans, such as #3+7-9, "
                             f"not {'#' + text!r}")
        low, high = map(int, ends)
        if not 1 <= low <= high:
            raise ValueError(f"frames of {name} must count from 1, upwards, not {part!r}")
        spans.append((low, high))
    return tuple(spans)


def _ends(name: str, link: str, nodes: int) -> list[tuple[int | None, int | None]]:
    def node(text: str) -> int | None:
        if not text.strip():
            return None
        if not (text.isascii() and text.isdigit() and int(text) < nodes):
            raise ValueError(f"node of {name} must be between 0 and {nodes - 1}, not {text!r}")
        return int(text)

    if "<>" in link:
        one, other = map(node, link.split("<>", 1))
        ends = [(one, other), (other, one)]
    elif ">" in link:
        one, other = map(node, link.split(">", 1))
        ends = [(one, other)]
    else:
        one, other = node(link), None
        ends = [(one, None), (None, one)]
    if one == other:
        raise ValueError(f"link of {name} must be such as 0>1, 0>, >1, 0<>1 or 0, not {link!r}")
    return ends


def _time(fault: str, which: str, text: str, low: float | None = None) -> float:
    try:
        time = float(quantity(f"{which}_us", text))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{fault}: {error}") from None
    if time > _LONGEST_US or (time <= 0 if low is None else time < low):
        bound = "above 0 us" if low is None else f"at least {low} us"
        raise ValueError(f"{which} of {fault} must be {bound} and at most "
                         f"{_LONGEST_US * 1e-6:g} s, not {text!r}")
    return time
