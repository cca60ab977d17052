"""Key table of gradient reduction: finds the entry of a beat's sum, or passes the beat on."""

from functools import reduce
from operator import or_

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.config import LANES
from rtl.formats import Key
from rtl.gradient.reducer_layouts import (
    beat_bits,
    key_line_layout,
    key_operation_layout,
    passed_beat_layout,
)
from rtl.keys.hashing import hash_bits, scale
from rtl.memory import Ram

__all__ = ["KeyTable", "key_addition_layout"]


def key_addition_layout(keys: int, beats: int, lanes: int = LANES) -> data.StructLayout:
    """Layout of an addition to an entry.

    ``first``: this beat of the entry was empty. ``made``: so were all others; the entry is new.
    """
    return key_operation_layout(keys, beats, data.StructLayout({
        "data": 32 * lanes, "first": 1, "made": 1}))


class KeyTable(wiring.Component):
    """Find or make the entry of each beat's key, in order, one beat per cycle whatever the keys.

    A set is one word of a RAM: its keys, and which beats of each are present. Sets fill first come
    first served, and only the walk removes keys: a beat that finds its set full of other keys is
    passed on, and so are all other beats of its key until the sets are emptied.

    Pipeline, all stages moving together: 1 hash, 2 set, 3 RAM out, 4 compare, 5 decide and write
    back, 6 operation. A decision reaches the lookups behind it directly: whole sets at stages 3 and
    4, and at stage 4 the match of the way just taken is whether the two keys are equal.

    Latency and rate: see ``LATENCY`` and ``RATE``.

    Parameters: ``keys``, ``ways``, powers of two; ``beats`` of the longest vector; ``lanes``.

    Ports
    -----
    i: input stream of :func:`passed_beat_layout`, ``beat`` below ``beats``; its ready depends on
        those of ``o`` and ``passed``.
    o: output stream of :func:`key_addition_layout`.
    passed: output stream of :func:`passed_beat_layout`.
    walking, read, read_address, line: while ``walking``, sets are read from outside; ``line`` is
        valid a cycle after ``read``, and stays. Only while ``idle``.
    enable: if 0, no entry is found or made, all is passed on. May change while sets are empty.
    clear, clear_address: empty a set; likewise, or after reset, when contents are undefined.
    idle: no beat inside.
    """

    LATENCY = {("beat", "its operation"): 6}
    RATE = "1 beat per cycle, whatever the keys"

    def __init__(self, keys: int, ways: int, beats: int, lanes: int = LANES):
        self._keys, self._ways, self._beats, self._lanes = keys, ways, beats, lanes
        self._sets = keys // ways
        address = max(1, ceil_log2(self._sets))
        super().__init__({
            "i": In(stream.Signature(passed_beat_layout(lanes))),
            "o": Out(stream.Signature(key_addition_layout(keys, beats, lanes))),
            "passed": Out(stream.Signature(passed_beat_layout(lanes))),
            "enable": In(1, init=1), "walking": In(1), "read": In(1), "read_address": In(address),
            "line": Out(key_line_layout(ways, beats)),
            "clear": In(1), "clear_address": In(address), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        ways, sets = self._ways, self._sets
        layout = key_line_layout(ways, self._beats)
        # Block RAM even for few sets: a NIC that trains is short of LUTs.
        m.submodules.lines = lines = Ram(layout.size, sets, style="bram")

        # Stage registers, indexed by stage.
        valid = {k: Signal(name=f"valid{k}") for k in range(1, 7)}
        key = {k: Signal(Key.size, name=f"key{k}") for k in range(1, 7)}
        word = {k: Signal(32 * self._lanes, name=f"word{k}") for k in range(1, 7)}
        beat = {k: Signal(beat_bits(self._beats), name=f"beat{k}") for k in range(1, 7)}
        set_ = {k: Signal(max(1, ceil_log2(sets)), name=f"set{k}") for k in range(2, 6)}
        line = {k: Signal(layout, name=f"line{k}") for k in (4, 5, 6)}
        hashed, match, place = Signal(32), Signal(ways), Signal(self._beats)
        # Same set at two stages, and same key at stages 4 and 5; all computed one cycle ahead.
        same35, same36, same45, same_key = (Signal(name=n) for n in (
            "same35", "same36", "same45", "same_key"))

        # Stage 5: decide. Ways are filled in ascending order.
        now, after = line[5], Signal(layout)
        known, free, used = Signal(), Signal(ways), Signal(ways)
        filled = Cat(way.present.any() | ~self.enable for way in now.ways)
        m.d.comb += [
            known.eq(match.any()), free.eq(~filled & Cat(C(1, 1), filled)[:ways]),
            used.eq(Mux(known, match, free)), after.eq(now),
        ]
        for w in range(ways):
            with m.If(used[w]):
                m.d.comb += after.ways[w].present.eq(now.ways[w].present | place)
            with m.If(~known & free[w]):
                m.d.comb += after.ways[w].key.eq(key[5])

        # Stage 6: output the beat.
        advance, passing, addition = Signal(), Signal(), self.o.payload
        m.d.comb += [
            advance.eq(~valid[6] | Mux(passing, self.passed.ready, self.o.ready)),
            self.i.ready.eq(advance),
            self.o.valid.eq(valid[6] & ~passing), self.passed.valid.eq(valid[6] & passing),
            addition.beat.eq(beat[6]), addition.payload.data.eq(word[6]),
            Cat(self.passed.payload.key).eq(key[6]), self.passed.payload.beat.eq(beat[6]),
            self.passed.payload.data.eq(word[6]),
            self.idle.eq(~Cat(valid.values()).any()),
            lines.read_en.eq(Mux(self.walking, self.read, advance)),
            lines.read_addr.eq(Mux(self.walking, self.read_address, set_[2])),
            self.line.eq(lines.read_data),
            lines.write_en.eq(self.clear | (advance & valid[5])),
            lines.write_addr.eq(Mux(self.clear, self.clear_address, set_[5])),
            lines.write_data.eq(Mux(self.clear, C(0, layout.size), after)),
        ]
        way_bits = ceil_log2(ways)
        way = _any_of([used[w].replicate(way_bits) & C(w, way_bits) for w in range(ways)])
        there = _any_of([match[w].replicate(self._beats) & now.ways[w].present
                         for w in range(ways)])
        with m.If(advance):
            m.d.sync += [
                addition.slot.eq(Cat(way, set_[5][:ceil_log2(sets)])),
                addition.payload.first.eq(~(there & place).any()),
                addition.payload.made.eq(~known), passing.eq(~used.any()),
            ]

        # Stages 1 to 5. A word that is read while it is written has the old value, so stage 6 keeps
        # the last set written for that lookup.
        with m.If(advance):
            m.d.sync += [
                valid[1].eq(self.i.valid), key[1].eq(self.i.payload.key),
                word[1].eq(self.i.payload.data), beat[1].eq(self.i.payload.beat),
                hashed.eq(hash_bits(self.i.payload.key)), set_[2].eq(scale(hashed[8:], C(sets))),
            ]
            for k in range(2, 7):
                chains = [valid, key, word, beat, *([set_] if 2 < k < 6 else [])]
                m.d.sync += [chain[k].eq(chain[k - 1]) for chain in chains]
            m.d.sync += [
                same35.eq(set_[2] == set_[4]), same36.eq(set_[2] == set_[5]),
                same45.eq(set_[3] == set_[4]), same_key.eq(key[3] == key[4]),
                place.eq(Cat(beat[4] == n for n in range(self._beats))),
                line[4].eq(Mux(same35 & valid[5], after,
                               Mux(same36 & valid[6], line[6], lines.read_data))),
                line[5].eq(Mux(same45 & valid[5], after, line[4])),
                line[6].eq(after),
            ]
            for w in range(ways):
                stored = line[4].ways[w]
                m.d.sync += match[w].eq(Mux(
                    same45 & valid[5] & ~known & free[w], same_key,
                    stored.present.any() & (stored.key == key[4])))
        return m


def _any_of(values: list[Value]) -> Value:
    """Return the OR of the values."""
    return reduce(or_, values)
