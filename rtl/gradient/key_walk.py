"""Key walk: reads every beat of a key table once, and empties its sets."""

from amaranth.hdl import C, Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.formats import Key
from rtl.gradient.reducer_layouts import key_line_layout, key_operation_layout
from rtl.memory import report_swept

__all__ = ["KeyWalk", "key_reading_layout"]


def key_reading_layout(keys: int, beats: int) -> data.StructLayout:
    """Layout of a beat that is read; ``last`` marks the last beat of ``key``."""
    return key_operation_layout(keys, beats, data.StructLayout({"key": Key.size, "last": 1}))


class KeyWalk(wiring.Component):
    """Read the beats of every entry of a key table, set by set, and empty the sets.

    The beats of a key are consecutive, in ascending order; empty beats are skipped. After reset the
    sets are emptied without reading, one per cycle, because the content of the RAM is undefined.

    Parameters: ``keys``, ``ways``, ``beats``, as in :class:`~rtl.gradient.key_table.KeyTable`.

    Ports
    -----
    start: In(1), begin a walk; only while neither ``sweeping`` nor ``walking``.
    sweeping: Out(1), the sweep after reset is running.
    walking: Out(1), 1 until the last beat has been taken.
    o: stream of :func:`key_reading_layout`.
    read, read_address, line, clear, clear_address: connections to the key table.
    """

    LATENCY = {("start", "first beat"): 4}
    RATE = "1 beat per cycle, and a cycle for an empty set, since the next set is read ahead"

    def __init__(self, keys: int, ways: int, beats: int):
        self._keys, self._ways, self._beats = keys, ways, beats
        self._sets = keys // ways
        address = max(1, ceil_log2(self._sets))
        super().__init__({
            "start": In(1), "sweeping": Out(1, init=1), "walking": Out(1),
            "o": Out(stream.Signature(key_reading_layout(keys, beats))),
            "read": Out(1), "read_address": Out(address),
            "line": In(key_line_layout(ways, beats)),
            "clear": Out(1), "clear_address": Out(address)})

    def elaborate(self, platform) -> Module:
        m = Module()
        sets = self._sets
        # The next set to read; the set whose line is available; the set being read out, whose ways
        # shift down as they are finished, and the number of its lowest way.
        following, fetched_set = Signal(range(sets + 1)), Signal(range(sets))
        fetched, now_set, way = Signal(), Signal(range(sets)), Signal(ceil_log2(self._ways))
        keys = Signal(data.ArrayLayout(Key.size, self._ways), reset_less=True)
        present = Signal(data.ArrayLayout(self._beats, self._ways))
        pick, rest = Signal(self._beats), Signal(self._beats)
        advance, busy, last, free, load, more = (Signal() for _ in range(6))
        others = present[1].any() if self._ways > 1 else C(0, 1)
        m.d.comb += [
            pick.eq(Cat(present[0][n] & ~present[0][:n].any() for n in range(self._beats))),
            rest.eq(present[0] & ~pick), last.eq(~rest.any()), busy.eq(present[0].any()),
            advance.eq(~self.o.valid | self.o.ready),
            free.eq(~busy | (advance & last & ~others)),
            load.eq(free & fetched), more.eq(following != sets),
            self.read.eq(self.walking & more & (free | ~fetched)),
            self.read_address.eq(following),
            self.clear.eq(self.sweeping | load), self.clear_address.eq(fetched_set),
        ]
        report_swept(m, ~self.sweeping)
        with m.If(self.sweeping):
            m.d.comb += self.clear_address.eq(following)
            m.d.sync += following.eq(following + 1)
            with m.If(following == sets - 1):
                m.d.sync += [self.sweeping.eq(0), following.eq(0)]
        with m.If(self.start):
            m.d.sync += [self.walking.eq(1), following.eq(0)]
        with m.Elif(self.walking & ~more & ~fetched & ~busy & advance):
            m.d.sync += self.walking.eq(0)
        with m.If(self.read):
            m.d.sync += [fetched.eq(1), fetched_set.eq(following), following.eq(following + 1)]
        with m.Elif(load):
            m.d.sync += fetched.eq(0)

        reading = self.o.payload
        with m.If(advance):
            m.d.sync += [
                self.o.valid.eq(busy), reading.payload.key.eq(keys[0]),
                reading.payload.last.eq(last), reading.slot.eq(Cat(way, now_set)),
            ]
            for n in range(1, self._beats):
                with m.If(pick[n]):
                    m.d.sync += reading.beat.eq(n)
            with m.If(pick[0]):
                m.d.sync += reading.beat.eq(0)
            with m.If(busy):
                m.d.sync += present[0].eq(rest)
                with m.If(last):
                    m.d.sync += [keys.eq(keys.as_value()[Key.size:]), way.eq(way + 1),
                                 present.eq(present.as_value()[self._beats:])]
        with m.If(load):
            m.d.sync += [now_set.eq(fetched_set), way.eq(0)]
            for n, held in enumerate(self.line.ways):
                m.d.sync += [keys[n].eq(held.key), present[n].eq(held.present)]
        return m
