"""Measure the latency of one block: one item into the idle block, first item out."""

from dataclasses import dataclass

import numpy as np
from amaranth.lib import data, wiring

from host.wire.layouts import field_bits, pack, word_count
from rtl.figures import latency_of
from rtl.formats import DescriptorKind, TableDescriptor
from sim.engines import load

__all__ = ["Latency", "Probe", "Push", "stated"]

_LIMIT = 20_000


@dataclass(frozen=True)
class Latency:
    """Cycles from an item that ``block`` takes to the first item that it gives.

    Members
    -------
    block: its class. start, end: which item in, which out.
    cycles: measured. stated: what its ``LATENCY`` says.
    """

    block: str
    start: str
    end: str
    cycles: int
    stated: int

    def as_dict(self) -> dict:
        """Return the row for JSON."""
        return {"name": f"{self.block}, {self.start} to {self.end}", "value": self.cycles,
                "unit": "cycles", "target": None, "holds": None, "block": self.block,
                "from": self.start, "to": self.end, "stated": self.stated}


@dataclass(frozen=True)
class Push:
    """A record for input ``stream``, ``after`` cycles behind the first of a measurement."""

    stream: str
    words: np.ndarray
    after: int = 0


def stated(block: type, start: str, end: str) -> int:
    """Return the cycles that ``LATENCY`` of ``block`` has from ``start`` to ``end``;
    ``RuntimeError`` when it has no such path."""
    found = latency_of(block).get((start, end))
    if not isinstance(found, int):
        raise RuntimeError(f"LATENCY of {block.__name__} has no cycles from {start!r} to {end!r}")
    return found


class Probe:
    """A block on Amaranth's simulator, its tables swept.

    Parameters: the block, and the values of its input signals.
    """

    def __init__(self, block: wiring.Component, **signals: int):
        self._block = block
        # Latencies do not depend on whether idle cycles are evaluated, and inputs that are plain
        # signals count from the cycle on in which they are set.
        self._engine = load(block, type(block).__name__, "pysim").instance(skip=False)
        for name, value in signals.items():
            self._engine.set_signal(name, value)
        self._engine.run(self._engine.cycle + 4)
        while not self._engine.get_signal("idle"):
            if self._engine.cycle > _LIMIT:
                raise RuntimeError(f"{self._name} is not idle after {_LIMIT} cycles")
            self._engine.run(self._engine.cycle + 16)

    @property
    def _name(self) -> str:
        return type(self._block).__name__

    def set(self, **signals: int) -> None:
        """Drive input signals for a cycle, all at once."""
        for name, value in signals.items():
            self._engine.set_signal(name, value)
        self._engine.run(self._engine.cycle + 1)

    def load_table(self) -> None:
        """Write the descriptor of table 0, whose 100 rows all are at node 0, through the ports
        ``write_*``."""
        words = pack(TableDescriptor, 1, valid=1, kind=int(DescriptorKind.TABLE), rows_low=100,
                     owners=1)[0].tolist()
        for word, value in enumerate(words):
            self.set(write_en=1, write_table=0, write_word=word, write_data=value)
        self.set(write_en=0)

    def layout(self, stream: str) -> data.StructLayout:
        """Return the layout of the payload of ``stream``; one of an array is ``name__index``."""
        name, _, index = stream.partition("__")
        port = getattr(self._block, name)
        return (port[int(index)] if index else port).payload.shape()

    def push(self, stream: str, after: int = 0, **fields: int) -> Push:
        """Return a record for ``stream``, its ``fields`` (``a__b`` for ``a.b``) set."""
        layout = self.layout(stream)
        places = field_bits(layout)
        value = 0
        for name, number in fields.items():
            offset, width = places[name.replace("__", ".")]
            if number >> width:
                raise ValueError(f"{name} must fit {width} bits, not {number!r}")
            value |= number << offset
        raw = value.to_bytes(4 * word_count(layout), "little")
        return Push(stream, np.frombuffer(raw, "<u4").reshape(1, -1), after)

    def give(self, sink: str, *pushes: Push, within: int = 200) -> tuple[np.ndarray, np.ndarray]:
        """Push records and return what leaves ``sink``, and when, counted from the cycle in which
        the last of them was taken. ``RuntimeError`` when it was not taken when offered, or nothing
        leaves."""
        engine = self._engine
        engine.pop(sink)
        base = engine.cycle + 4
        for push in pushes:
            engine.push(push.stream, push.words, base + push.after)
        last = max(pushes, key=lambda push: push.after)
        start = base + last.after
        engine.run(start)
        if engine.waiting(last.stream) != 1:
            raise RuntimeError(f"{self._name}: {last.stream} took the item before its cycle")
        engine.run(start + 1)
        if engine.waiting(last.stream):
            raise RuntimeError(f"{self._name}: {last.stream} did not take the item in its cycle")
        engine.run(start + within)
        records, cycles = engine.pop(sink)
        if not len(cycles):
            raise RuntimeError(f"{self._name}: nothing left {sink} within {within} cycles")
        return records, cycles.astype(np.int64) - start

    def latency(self, start: str, end: str, sink: str, *pushes: Push,
                within: int = 200) -> Latency:
        """Measure from the last of ``pushes`` to the first item on ``sink``.

        ``start``, ``end``: what these are, a path of ``LATENCY`` of the block.
        """
        _, cycles = self.give(sink, *pushes, within=within)
        return self.compared(start, end, int(cycles[0]))

    def compared(self, start: str, end: str, cycles: int) -> Latency:
        """Return ``cycles`` from ``start`` to ``end`` beside those that the block states."""
        return Latency(self._name, start, end, cycles, stated(type(self._block), start, end))

    def access(self, address: int, *, write: bool, within: int = 200) -> int:
        """Return the cycles from an access of a register, taken at once, to its answer."""
        engine = self._engine
        start = engine.cycle + 4
        if write:
            engine.write(address, 0, start)
        else:
            engine.read(address, start)
        engine.run(start)
        while engine.registers_pending:
            if engine.cycle > start + within:
                raise RuntimeError(f"{self._name}: no answer within {within} cycles")
            engine.run(engine.cycle + 1)
        engine.read_results()  # raises where the answer is an error
        return engine.cycle - 1 - start
