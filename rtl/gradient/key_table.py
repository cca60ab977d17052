"""Key table of gradient reduction: which entry a vector is added to, and which has to leave."""

from functools import reduce
from operator import or_

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.cache.lru import oldest, touch
from rtl.config import LANES
from rtl.formats import Key
from rtl.hashing import hash_bits, scale
from rtl.memory import Ram

from .reducer_layouts import beat_bits, key_line_layout, key_operation_layout

__all__ = ["KeyTable", "key_merge_layout"]


def key_merge_layout(keys: int, beats: int, lanes: int = LANES) -> data.StructLayout:
    """Layout of the operation that a beat asks for.

    ``first``: the key had no entry. ``take``: another key's sum leaves the entry before.
    """
    return key_operation_layout(keys, beats, data.StructLayout({
        "data": 32 * lanes, "first": 1, "take": 1}))


class KeyTable(wiring.Component):
    """Find or make the entry of each vector's key, in order, one beat per cycle whatever the keys.

    A set is one word of a RAM: the keys, and the exact LRU order. The first beat of a vector looks
    its key up; the others go where it went. A key without an entry takes the one that was used
    longest ago, an empty one first: keys follow a power law, so that the oldest is the one that
    least likely comes again, where a round would drop the frequent keys as often as the others.

    Pipeline, all stages moving together: 1 hash, 2 set, 3 RAM out, 4 compare, 5 decide and write
    back, 6 operation. A decision reaches the lookups behind it directly: whole sets at stages 3 and
    4, and at stage 4 the match of the way just taken is whether the two keys are equal.

    Latency 6 cycles.

    Parameters: ``keys``, ``ways``, powers of two; ``beats`` of the longest vector; ``lanes``.

    Ports
    -----
    i: input stream of ``key``, ``data`` and ``last``; ready depends on that of ``o``.
    o: output stream of :func:`key_merge_layout`.
    walking, read, read_address, line: while ``walking``, sets are read from outside; ``line`` is
        there a cycle after ``read``, and stays. Only while ``idle``.
    clear, clear_address: empty a set; likewise, or after reset, when contents are undefined.
    head: the next beat in is the first of a vector.
    idle: no beat inside.
    """

    def __init__(self, keys: int, ways: int, beats: int, lanes: int = LANES):
        self._keys, self._ways, self._beats, self._lanes = keys, ways, beats, lanes
        self._sets = keys // ways
        address = max(1, ceil_log2(self._sets))
        super().__init__({
            "i": In(stream.Signature(data.StructLayout(
                {"key": Key.size, "data": 32 * lanes, "last": 1}))),
            "o": Out(stream.Signature(key_merge_layout(keys, beats, lanes))),
            "walking": In(1), "read": In(1), "read_address": In(address),
            "line": Out(key_line_layout(ways)),
            "clear": In(1), "clear_address": In(address), "head": Out(1), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        ways, sets = self._ways, self._sets
        layout = key_line_layout(ways)
        m.submodules.lines = lines = Ram(
            layout.size, sets, style="lutram" if sets <= 64 else "bram")

        # Stage registers, indexed by stage. ``look``: the first beat of a vector.
        valid, look = ({k: Signal(name=f"{name}{k}") for k in range(1, 7)}
                       for name in ("valid", "look"))
        key = {k: Signal(Key.size, name=f"key{k}") for k in range(1, 6)}
        word = {k: Signal(32 * self._lanes, name=f"word{k}") for k in range(1, 6)}
        beat = {k: Signal(beat_bits(self._beats), name=f"beat{k}") for k in range(1, 6)}
        set_ = {k: Signal(max(1, ceil_log2(sets)), name=f"set{k}") for k in range(2, 6)}
        line = {k: Signal(layout, name=f"line{k}") for k in (4, 5, 6)}
        hashed, match = Signal(32), Signal(ways)
        # Same set at two stages, and same key at stages 4 and 5; all found one cycle ahead.
        same35, same36, same45, same_key = (Signal(name=n) for n in (
            "same35", "same36", "same45", "same_key"))

        # Stage 5: decide.
        now, after = line[5], Signal(layout)
        present, evict, victim, used = Signal(), Signal(), Signal(ways), Signal(ways)
        m.d.comb += [
            present.eq(match.any()), victim.eq(oldest(now.order, ways)),
            used.eq(Mux(present, match, victim)),
            evict.eq(~present & (victim & Cat(way.valid for way in now.ways)).any()),
            after.eq(now), after.order.eq(touch(now.order, used, ways)),
            after.partial.eq(now.partial | evict),
        ]
        for w in range(ways):
            with m.If(~present & victim[w]):
                m.d.comb += [after.ways[w].key.eq(key[5]), after.ways[w].valid.eq(1)]

        advance, operation = Signal(), self.o.payload
        at = Signal(beat_bits(self._beats))
        m.d.comb += [
            advance.eq(~valid[6] | self.o.ready), self.i.ready.eq(advance),
            self.o.valid.eq(valid[6]), self.head.eq(at == 0),
            self.idle.eq(~Cat(valid.values()).any()),
            lines.read_en.eq(Mux(self.walking, self.read, advance)),
            lines.read_addr.eq(Mux(self.walking, self.read_address, set_[2])),
            self.line.eq(lines.read_data),
            lines.write_en.eq(self.clear | (advance & look[5])),
            lines.write_addr.eq(Mux(self.clear, self.clear_address, set_[5])),
            lines.write_data.eq(Mux(self.clear, C(0, layout.size), after)),
        ]
        way_bits = ceil_log2(ways)
        way = _any_of([used[w].replicate(way_bits) & C(w, way_bits) for w in range(ways)])
        leaving = _any_of([victim[w].replicate(Key.size) & now.ways[w].key for w in range(ways)])
        with m.If(advance):
            m.d.sync += [valid[6].eq(valid[5]), look[6].eq(look[5])]
            with m.If(valid[5]):
                m.d.sync += [operation.beat.eq(beat[5]), operation.payload.data.eq(word[5])]
            # What the first beat found holds for the others.
            with m.If(look[5]):
                m.d.sync += [
                    operation.slot.eq(Cat(way, set_[5][:ceil_log2(sets)])),
                    operation.key.eq(leaving), operation.partial.eq(1),
                    operation.payload.first.eq(~present), operation.payload.take.eq(evict),
                ]

        # Stages 1 to 5. A word read in the cycle it is written is the old one: stage 6 keeps the
        # last set written for the lookup that read it then.
        with m.If(advance):
            m.d.sync += [
                valid[1].eq(self.i.valid), look[1].eq(self.i.valid & self.head),
                key[1].eq(self.i.payload.key), word[1].eq(self.i.payload.data), beat[1].eq(at),
                hashed.eq(hash_bits(self.i.payload.key)), set_[2].eq(scale(hashed[8:], C(sets))),
            ]
            with m.If(self.i.valid):
                m.d.sync += at.eq(Mux(self.i.payload.last, 0, at + 1))
            for k in range(2, 6):
                chains = [valid, look, key, word, beat, *([set_] if k > 2 else [])]
                m.d.sync += [chain[k].eq(chain[k - 1]) for chain in chains]
            m.d.sync += [
                same35.eq(set_[2] == set_[4]), same36.eq(set_[2] == set_[5]),
                same45.eq(set_[3] == set_[4]), same_key.eq(key[3] == key[4]),
                line[4].eq(Mux(same35 & look[5], after,
                               Mux(same36 & look[6], line[6], lines.read_data))),
                line[5].eq(Mux(same45 & look[5], after, line[4])),
                line[6].eq(after),
            ]
            for w in range(ways):
                stored = line[4].ways[w]
                m.d.sync += match[w].eq(Mux(
                    same45 & look[5] & ~present & victim[w], same_key,
                    stored.valid & (stored.key == key[4])))
        return m


def _any_of(values: list[Value]) -> Value:
    """Return the OR of the values."""
    return reduce(or_, values)
