"""Word ring: stores the words of bags, and compares them with words that it stored before."""

from itertools import pairwise

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from rtl.bags.layouts import Segment
from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT
from rtl.memory import Ram
from rtl.network.packet_store import style_of

__all__ = ["RingSegment", "WordRing"]

_HALF = RECORD_BITS // 2
_LANE_BITS = exact_log2(RECORDS_PER_BEAT)


def RingSegment(words: int) -> data.StructLayout:
    """Layout of a segment for a ring of ``words`` words.

    wide, weighted, odd: properties of its bag; ``odd``: an odd number of keys. old, new: places of
    its first word behind the head: of the word to compare, and of the word to store. compares: the
    bag may be equal to the old bag, which has the same head. writes: the words are stored.
    """
    return data.StructLayout({
        "segment": Segment, "wide": 1, "weighted": 1, "odd": 1, "old": range(words),
        "new": range(words), "compares": 1, "writes": 1})


class WordRing(wiring.Component):
    """Store the words of a segment behind the head, and compare them with as many older words.

    Each of the 8 lanes is a RAM of 64 bits with its own address; word n of the ring is in lane
    n mod 8. A segment begins at any place. Its words are rotated to their lanes, and the older
    words are rotated to the lanes of the words that are compared with them. Only the two halves of
    words that contain a row or a weight are compared: not the upper half of the last word of the
    rows, or of the weights, of a bag with an odd number of keys.

    Words may be compared from the second segment after the segment that stores them.

    Parameters: ``words``, a power of two of at least 16.

    Ports
    -----
    i: ``valid`` and ``payload`` of :func:`RingSegment`; the segments of a bag follow each other.
    o: ``valid``: the tail of a bag has been compared. ``equal``: all its words are equal to the
        older words, and its head had ``compares``.
    idle: no segment inside.

    Raises ``ValueError`` for ``words`` out of range.
    """

    LATENCY = {("tail", "its verdict"): 6}
    RATE = "1 segment per cycle"

    def __init__(self, words: int):
        if isinstance(words, bool) or not isinstance(words, int) or (
                words < 16 or words & (words - 1)):
            raise ValueError(f"words must be a power of two of at least 16, not {words!r}")
        self._words, self._item = words, RingSegment(words)
        super().__init__({
            "i": In(data.StructLayout({"valid": 1, "payload": self._item})),
            "o": Out(data.StructLayout({"valid": 1, "equal": 1})), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        lanes, depth = RECORDS_PER_BEAT, self._words // RECORDS_PER_BEAT
        item, segment = self.i.payload, self.i.payload.segment
        # 1: addresses and sources; 2: the older words are read, new words are in their lanes; 3:
        # older words too; 4: equal halves; 5: equal segments; 6: equal bags.
        valid = [self.i.valid] + [Signal(name=f"valid{k}") for k in range(1, 7)]
        layout = data.StructLayout({"head": 1, "tail": 1, "compares": 1})
        flags = [Signal(layout, name=f"flags{k}", reset_less=True) for k in range(1, 6)]
        m.d.sync += [after.eq(before) for line in (valid, flags) for before, after in
                     pairwise(line)]
        m.d.sync += flags[0].eq(Cat(segment.head, segment.tail, item.compares))

        words = Signal(data.ArrayLayout(RECORD_BITS, lanes), name="words1", reset_less=True)
        size, begin = Signal(range(lanes + 1)), Signal(_LANE_BITS)
        turn = [Signal(_LANE_BITS, name=f"turn{k}", reset_less=True) for k in (1, 2)]
        m.d.comb += [size.eq(segment.size - segment.head), begin.eq(segment.first + segment.head)]
        m.d.sync += [words.eq(segment.words), turn[1].eq(turn[0]),
                     turn[0].eq(item.old[:_LANE_BITS] - item.new[:_LANE_BITS])]
        read, same = Signal(data.ArrayLayout(RECORD_BITS, lanes)), Signal(lanes)
        for k in range(lanes):
            def register(shape, name, stage, k=k, **kwargs):
                return Signal(shape, name=f"{name}{stage}_{k}", **kwargs)

            # Number of the lane's word in the segment, and its place in the input.
            number, source = (Signal(_LANE_BITS, name=f"{name}_{k}")
                              for name in ("number", "source"))
            chosen = register(_LANE_BITS, "chosen", 1, reset_less=True)
            low, high, inside = Signal(), Signal(), Signal()
            used = [register(2, "used", stage, reset_less=True) for stage in range(1, 5)]
            writes = [register(1, "writes", stage) for stage in (1, 2)]
            rows = [register(range(depth), "row", stage, reset_less=True) for stage in (1, 2)]
            old_row = register(range(depth), "old_row", 1, reset_less=True)
            now = [register(RECORD_BITS, "now", stage, reset_less=True) for stage in (2, 3)]
            was = register(RECORD_BITS, "was", 3, reset_less=True)
            equal = register(2, "equal", 4, reset_less=True)
            m.submodules[f"lane{k}"] = ram = Ram(RECORD_BITS, depth, style=style_of(depth))
            m.d.comb += [
                number.eq(k - item.new[:_LANE_BITS]), source.eq(number + begin),
                inside.eq(number < size), low.eq(inside),
                # Unused halves: of the last word of rows, and of weights.
                high.eq(inside & ~(item.odd & (
                    (~item.wide & segment.keys[0] & (segment.keys[1:] == number))
                    | (item.weighted & segment.tail & (number == size - 1))))),
                ram.read_addr.eq(old_row), read[k].eq(ram.read_data),
                ram.write_en.eq(writes[1]), ram.write_addr.eq(rows[1]), ram.write_data.eq(now[0]),
                same[k].eq((~used[3] | equal).all()),
            ]
            m.d.sync += [
                chosen.eq(source), used[0].eq(Cat(low, high)),
                *(after.eq(before) for line in (used, writes, rows, now)
                  for before, after in pairwise(line)),
                writes[0].eq(self.i.valid & item.writes & inside),
                rows[0].eq(item.new[_LANE_BITS:] + (k < item.new[:_LANE_BITS])),
                old_row.eq(item.old[_LANE_BITS:] + (k < item.old[:_LANE_BITS])),
                now[0].eq(Array(words)[chosen]),
                was.eq(Array(read)[(k + turn[1])[:_LANE_BITS]]),
                equal.eq(Cat(now[1][:_HALF] == was[:_HALF], now[1][_HALF:] == was[_HALF:])),
            ]
        whole, so_far, result = Signal(reset_less=True), Signal(reset_less=True), Signal()
        m.d.comb += [
            result.eq(whole & Mux(flags[4].head, flags[4].compares, so_far)),
            self.idle.eq(~Cat(valid[1:]).any()),
        ]
        m.d.sync += whole.eq(same.all())
        with m.If(valid[5]):
            m.d.sync += so_far.eq(result)
        m.d.sync += [self.o.valid.eq(valid[5] & flags[4].tail), self.o.equal.eq(result)]
        return m
