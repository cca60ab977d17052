"""Walk through the sets of a key table: every entry is named once, and every set emptied."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.formats import Key

from .reducer_layouts import beat_bits, key_line_layout, key_operation_layout

__all__ = ["KeyWalk"]


class KeyWalk(wiring.Component):
    """Name the beats of every entry of a key table, set by set, and empty the sets.

    After reset it empties them without looking, for a RAM holds anything then: a cycle each.
    Throughput 1 beat per cycle, and a cycle for an empty set, since the next set is read ahead.
    Latency 4 cycles from ``start`` to the first beat.

    Parameters: ``keys``, ``ways``, ``beats``, as :class:`~rtl.gradient.key_table.KeyTable` has
    them.

    Ports
    -----
    start: In(1), begin; only while neither ``sweeping`` nor ``walking``.
    sweeping: Out(1), sets are emptied after reset.
    walking: Out(1), until the last beat has been taken.
    vector_beats: beats of an entry.
    o: output stream of the operation on each beat.
    read, read_address, line, clear, clear_address: to the key table.
    """

    def __init__(self, keys: int, ways: int, beats: int):
        self._keys, self._ways, self._beats = keys, ways, beats
        self._sets = keys // ways
        address = max(1, ceil_log2(self._sets))
        super().__init__({
            "start": In(1), "sweeping": Out(1, init=1), "walking": Out(1),
            "vector_beats": In(range(beats + 1)),
            "o": Out(stream.Signature(key_operation_layout(keys, beats, data.StructLayout({})))),
            "read": Out(1), "read_address": Out(address), "line": In(key_line_layout(ways)),
            "clear": Out(1), "clear_address": Out(address)})

    def elaborate(self, platform) -> Module:
        m = Module()
        ways, sets = self._ways, self._sets
        # The set to be read next; the one whose line is there; the one being named.
        following, fetched_set = Signal(range(sets + 1)), Signal(range(sets))
        fetched, now_set, partial = Signal(), Signal(range(sets)), Signal()
        todo, pick, rest = Signal(ways), Signal(ways), Signal(ways)
        keys = Signal(data.ArrayLayout(Key.size, ways))
        beat = Signal(beat_bits(self._beats))
        advance, last, free, load, more = (Signal() for _ in range(5))
        m.d.comb += [
            pick.eq(Cat(todo[w] & ~todo[:w].any() for w in range(ways))), rest.eq(todo & ~pick),
            advance.eq(~self.o.valid | self.o.ready), last.eq(beat + 1 == self.vector_beats),
            free.eq(~todo.any() | (advance & last & ~rest.any())),
            load.eq(free & fetched), more.eq(following != sets),
            self.read.eq(self.walking & more & (free | ~fetched)),
            self.read_address.eq(following),
            self.clear.eq(self.sweeping | load), self.clear_address.eq(fetched_set),
        ]
        with m.If(self.sweeping):
            m.d.comb += self.clear_address.eq(following)
            m.d.sync += following.eq(following + 1)
            with m.If(following == sets - 1):
                m.d.sync += [self.sweeping.eq(0), following.eq(0)]
        with m.If(self.start):
            m.d.sync += [self.walking.eq(1), following.eq(0)]
        with m.Elif(self.walking & ~more & ~fetched & ~todo.any() & advance):
            m.d.sync += self.walking.eq(0)
        with m.If(self.read):
            m.d.sync += [fetched.eq(1), fetched_set.eq(following), following.eq(following + 1)]
        with m.Elif(load):
            m.d.sync += fetched.eq(0)

        operation, way_bits = self.o.payload, ceil_log2(ways)
        with m.If(advance):
            m.d.sync += [
                self.o.valid.eq(todo.any()), operation.beat.eq(beat),
                operation.partial.eq(partial),
                operation.slot[way_bits:].eq(now_set),
            ]
            for w in range(ways):
                with m.If(pick[w]):
                    m.d.sync += [operation.key.eq(keys[w]), operation.slot[:way_bits].eq(w)]
            with m.If(todo.any()):
                m.d.sync += beat.eq(beat + 1)
                with m.If(last):
                    m.d.sync += [beat.eq(0), todo.eq(rest)]
        with m.If(load):
            m.d.sync += [
                todo.eq(Cat(way.valid for way in self.line.ways)), now_set.eq(fetched_set),
                partial.eq(self.line.partial),
                *(keys[w].eq(self.line.ways[w].key) for w in range(ways)),
            ]
        return m
