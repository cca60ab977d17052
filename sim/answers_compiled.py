"""Answers to the samples of a host, put in place by C++ where they are one sample a packet."""

import ctypes
from array import array
from ctypes import POINTER, c_int32, c_uint32, c_uint64, c_void_p
from pathlib import Path

from host.layouts import field_bits
from host.packets import field_place, parse_headers
from rtl.formats import BEAT_BYTES, Opcode, PooledTag, ResultPartTag
from sim.answers import Answers, Refused, Told
from sim.engines import Engine
from sim.engines.compiled import CompiledEngine
from sim.engines.library import library
from sim.ports import Packets
from sim.results import Step

__all__ = ["CompiledAnswers", "answers_of"]


class _Field(ctypes.Structure):
    _fields_ = (("byte", c_uint32), ("bytes", c_uint32))


_HEAD = ("opcode", "credit", "acknowledge", "count")
_TAG = ("sample", "first", "last")


class _Wire(ctypes.Structure):
    _fields_ = (("words", c_uint32), *((name, _Field) for name in (*_HEAD, *_TAG)),
                *((name, c_uint32) for name in ("errors", "answers", "other_answers")))


class _Share(ctypes.Structure):
    _fields_ = (*((name, c_uint32) for name in ("number", "samples", "first", "end")),
                *((name, c_uint64) for name in ("parts", "values")),
                *((name, c_void_p) for name in ("answers", "filled", "left")))


class _Credits(ctypes.Structure):
    _fields_ = (("credit", c_uint32), ("acknowledge", c_uint32))
    credit: int
    acknowledge: int


_FUNCTIONS = {"ember_answers": (c_uint64, [
    POINTER(_Wire), c_void_p, c_void_p, c_void_p, c_uint64, c_uint64, c_void_p, c_uint64,
    POINTER(_Credits), c_void_p])}
_NOTHING = -1
"""What C++ says of a packet that the host need not know of."""


def _field(place: tuple[int, int], most: int = 4) -> _Field:
    bit, width = place
    assert bit % 8 == 0, "fields that are read begin with a byte"
    return _Field(bit // 8, min(-(-width // 8), most))


def _wire(interaction: bool) -> _Wire:
    pooled, part = field_bits(PooledTag), field_bits(ResultPartTag)
    names = (("sample", "sample"), ("first_bag", "first_beat"), ("last", "last"))
    assert [pooled[mine] for mine, _ in names] == [part[theirs] for _, theirs in names]
    # Headers are read as host.packets.Header does: the low 16 bits of the acknowledgement.
    return _Wire(BEAT_BYTES // 4, *(_field(field_place(name), most=2) for name in _HEAD),
                 *(_field(pooled[mine]) for mine, _ in names), Opcode.ERRORS,
                 *((Opcode.RESULT_PART, Opcode.RESULTS) if interaction else 2 * (Opcode.POOLED,)))


class CompiledAnswers(Answers):
    """What :class:`sim.answers.Answers` does: POOLED and RESULT_PART packets in C++.

    ``BuildError`` when the C++ compiler fails; the first instance compiles where nothing is cached.
    """

    def __init__(self, number: int, dimension: int, *, interaction: bool,
                 refused: Refused = lambda samples, steps, statuses: None):
        super().__init__(number, dimension, interaction=interaction, refused=refused)
        self._place_all = library(Path(__file__).parent / "answers.cpp", _FUNCTIONS,
                                  short=True).ember_answers
        self._wire, self._known = _wire(interaction), _Credits()
        self._opened: dict[int, _Share] = {}
        self._arrange()

    def open(self, step: Step) -> None:
        """See :meth:`sim.answers.Answers.open`."""
        super().open(step)
        node = self._number
        self._opened[step.number] = _Share(
            step.first & 0xFFFFFFFF, len(step.samples), step.shares[node], step.shares[node + 1],
            *step.answers.shape[1:], step.answers.ctypes.data, step.filled.ctypes.data,
            step.left[node:].ctypes.data)
        self._arrange()

    def close(self, step: Step) -> None:
        """See :meth:`sim.answers.Answers.close`."""
        super().close(step)
        del self._opened[step.number]
        self._arrange()

    def _arrange(self) -> None:
        self._open = list(self.steps.values())
        self._shares = (_Share * len(self._open))(*self._opened.values())

    def take(self, packets: Packets) -> list[Told]:
        """See :meth:`sim.answers.Answers.take`."""
        beats, starts, ends, cycles = packets
        count, first, told = len(starts), 0, []
        begins, stops, tell = array("Q", starts), array("Q", ends), array("i", bytes(4 * count))
        assert tell.itemsize == ctypes.sizeof(c_int32)
        while first < count:
            stop = self._place_all(
                self._wire, beats.ctypes.data, begins.buffer_info()[0], stops.buffer_info()[0],
                first, count, self._shares, len(self._open), self._known, tell.buffer_info()[0])
            named = [at for at in range(first, stop) if tell[at] != _NOTHING]
            told += [Told(at, head, (self._open[tell[at]],) if tell[at] >= 0 else ())
                     for at, head in zip(named, parse_headers(beats[[starts[at] for at in named]]))]
            if stop < count:
                one = slice(stop, stop + 1)
                self._credits = self._known.credit, self._known.acknowledge
                told += [Told(stop, head, completed) for _, head, completed in super().take(
                    Packets(beats, starts[one], ends[one], cycles[one]))]
                self._known = _Credits(*self._credits)
            first = stop + 1
        return told


def answers_of(engine: Engine, number: int, dimension: int, *, interaction: bool,
               refused: Refused) -> Answers:
    """Return what takes the answers of the NIC of node ``number``: compiled where the NIC is."""
    kind = CompiledAnswers if isinstance(engine, CompiledEngine) else Answers
    return kind(number, dimension, interaction=interaction, refused=refused)
