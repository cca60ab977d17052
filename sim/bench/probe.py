"""Probe that measures the latency of one block: one item into the idle block, first item out."""

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
    """Cycles from an item that ``block`` accepts to the first item that it emits.

    Members
    -------
    block: name of the class.
    start, end: the item in and the item out.
    cycles, stated: measured latency, and latency stated by ``LATENCY``.
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
    """A record for input ``stream``, ``after`` cycles after the start of a measurement."""

    stream: str
    words: np.ndarray
    after: int = 0


def stated(block: type, start: str, end: str) -> int:
    """Return the cycles that ``LATENCY`` of ``block`` states from ``start`` to ``end``;
    ``RuntimeError`` if it has no such path."""
    found = latency_of(block).get((start, end))
    if not isinstance(found, int):
        raise RuntimeError(f"LATENCY of {block.__name__} has no cycles from {start!r} to {end!r}")
    return found


class Probe:
    """A block on Amaranth's simulator, with its tables cleared.

    Parameters: the block, and the values of its input signals.
    """

    def __init__(self, block: wiring.Component, **signals: int):
        self._block = block
        # Evaluate idle cycles too: latencies are the same, and inputs that are plain signals then
        # take effect in the cycle in which they are set.
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
        """Write the descriptor of table 0, with 100 rows, all at node 0, through the ports
        ``write_*``."""
        words = pack(TableDescriptor, 1, valid=1, kind=int(DescriptorKind.TABLE), rows_low=100,
                     owners=1)[0].tolist()
        for word, value in enumerate(words):
            self.set(write_en=1, write_table=0, write_word=word, write_data=value)
        self.set(write_en=0)

    def layout(self, stream: str) -> data.StructLayout:
        """Return the payload layout of ``stream``; ``name__index`` names an element of an array."""
        name, _, index = stream.partition("__")
        port = getattr(self._block, name)
        return (port[int(index)] if index else port).payload.shape()

    def push(self, stream: str, after: int = 0, **fields: int) -> Push:
        """Return a record for ``stream`` with ``fields`` set (``a__b`` for ``a.b``)."""
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

    def drive(self, sink: str, *pushes: Push, within: int = 200,
              taken: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Push records; return the records that leave ``sink`` and their cycles.

        Cycles count from the one in which the last push was offered. ``RuntimeError`` if that push
        was not accepted ``taken`` cycles later, or if nothing leaves.
        """
        engine = self._engine
        engine.pop(sink)
        base = engine.cycle + 4
        for push in pushes:
            engine.push(push.stream, push.words, base + push.after)
        last = max(pushes, key=lambda push: push.after)
        start = base + last.after
        engine.run(start + taken)
        if engine.waiting(last.stream) != 1:
            raise RuntimeError(f"{self._name}: {last.stream} took the item before its cycle")
        engine.run(start + taken + 1)
        if engine.waiting(last.stream):
            raise RuntimeError(f"{self._name}: {last.stream} did not take the item in its cycle")
        engine.run(start + within)
        records, cycles = engine.pop(sink)
        if not len(cycles):
            raise RuntimeError(f"{self._name}: nothing left {sink} within {within} cycles")
        return records, cycles.astype(np.int64) - start

    def latency(self, start: str, end: str, sink: str, *pushes: Push,
                within: int = 200, taken: int = 0) -> Latency:
        """Measure from the last of ``pushes`` to the first item on ``sink``.

        ``start``, ``end``: names of the two items, a path in ``LATENCY`` of the block. ``taken``:
        cycles for which the block looks at the last push before it takes it.
        """
        _, cycles = self.drive(sink, *pushes, within=within, taken=taken)
        return self.with_stated(start, end, int(cycles[0]))

    def with_stated(self, start: str, end: str, cycles: int) -> Latency:
        """Return measured ``cycles`` from ``start`` to ``end`` with those that the block states."""
        return Latency(self._name, start, end, cycles, stated(type(self._block), start, end))

    def access(self, address: int, *, write: bool, within: int = 200) -> int:
        """Return the cycles from a register access, accepted at once, to its answer."""
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
        engine.read_results()  # raises if the answer is an error
        return engine.cycle - 1 - start
