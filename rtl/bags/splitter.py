"""Segment split: splits beats into the records and the segments of bags that they contain."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.bags.layouts import split_beat, split_item
from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT, BagHead, QueryBag, RecordKind
from rtl.stream import SkidBuffer

__all__ = ["SegmentSplit"]

_STAGES = 3
"""Cycles in which the size of an item at each position of a beat is computed."""
_SIZE_BITS = 12
"""Bits of the size of an item. The size of a bag that is too long is the largest number, which
exceeds every packet."""


class SegmentSplit(wiring.Component):
    """Split beats into records, one word each, and segments of bags.

    A bag begins at any word, and continues through the beats of its packet. It takes one cycle in
    each beat. A bag that is not complete at the end of its packet is ``cut``, and the next packet
    begins with a new item. A bag of more than ``most`` words takes the rest of its packet, and is
    ``long``. After a ``fresh`` beat the open bag does not continue; its tail never appears.

    Pipeline: the end of an item is computed for each position of a beat, as if an item began there.
    The loop from item to item is then a selection by position.

    Parameters
    ----------
    user: shape of data that accompanies a beat.
    most: words of the longest bag, with its head; at most 1,120, a packet of 140 beats.
    plain: beats also contain records, words that are no :data:`~rtl.formats.QueryBag`. Otherwise
        each item is a bag (:data:`~rtl.formats.BagHead`).

    Ports
    -----
    i: stream of :func:`rtl.bags.layouts.split_beat`.
    o: stream of :func:`rtl.bags.layouts.split_item`.
    idle: no beat inside.

    Raises ``ValueError`` for ``most`` out of range.
    """

    LATENCY = {("beat", "its first item"): _STAGES + 2}
    RATE = "1 item per cycle"

    def __init__(self, user: ShapeLike, most: int, *, plain: bool = True):
        limit = RECORDS_PER_BEAT * 140
        if isinstance(most, bool) or not isinstance(most, int) or not 2 <= most <= limit:
            raise ValueError(f"most must be between 2 and {limit}, not {most!r}")
        self._most, self._plain = most, plain
        self._beat, self._item = split_beat(user), split_item(user)
        super().__init__({"i": In(stream.Signature(self._beat)),
                          "o": Out(stream.Signature(self._item)), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.output = output = SkidBuffer(self._item)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        beats = [self.i.payload] + [Signal(self._beat, name=f"beat{k}", reset_less=True)
                                    for k in range(_STAGES + 1)]
        valids = [self.i.valid] + [Signal(name=f"valid{k}") for k in range(_STAGES + 1)]
        beat, busy, final, advance, taken = beats[-1], valids[-1], Signal(), Signal(), Signal()
        m.d.comb += [
            taken.eq(busy & output.i.ready), output.i.valid.eq(busy),
            advance.eq(~busy | (output.i.ready & final)), self.i.ready.eq(advance),
            self.idle.eq(~Cat(valids[1:]).any() & output.idle),
        ]
        ahead = self._measure(m, beats, advance)
        here = [Signal.like(each, reset_less=True) for each in ahead]
        comes = Signal()
        with m.If(advance):
            m.d.sync += [after.eq(before) for line in (beats[:-1], valids)
                         for before, after in pairwise(line)]
        # The last beat stays until the next one comes: its bag may go on.
        m.d.comb += comes.eq(advance & valids[-2])
        with m.If(comes):
            m.d.sync += [beat.eq(beats[-2]),
                         *(after.eq(before) for after, before in zip(here, ahead))]

        # The item that leaves: its words, the rest of its bag in later beats, and its record.
        first, stop = Signal(range(RECORDS_PER_BEAT)), Signal(range(RECORDS_PER_BEAT + 1))
        rest, record = Signal(_SIZE_BITS), Signal(RECORD_BITS, reset_less=True)
        plain, begins, long = Signal(), Signal(), Signal()
        keys, goes_on = Signal(BagHead["keys"].width, reset_less=True), Signal()
        m.d.comb += goes_on.eq((rest != 0) & ~beat.last & ~beats[-2].fresh)
        with m.If(comes):
            # The first item of the next beat.
            more = beats[-2].records
            begin, left = Signal.like(stop), Signal.like(rest)
            m.d.comb += [begin.eq(Mux(rest > more, more, rest)), left.eq(rest - begin)]
            m.d.sync += first.eq(0)
            with m.If(goes_on):
                m.d.sync += [stop.eq(begin), rest.eq(left), begins.eq(0), final.eq(rest >= more)]
            with m.Else():
                m.d.sync += [*self._start(ahead[0], beats[-2], 0, stop, rest, record, plain, long),
                             begins.eq(1), final.eq(ahead[0].final)]
        with m.Elif(taken & ~final):
            # The next item of the beat.
            items = data.ArrayLayout(ahead[0].shape(), RECORDS_PER_BEAT)
            chosen = data.View(items, Cat(here))[stop[:3]]
            m.d.sync += [first.eq(stop), begins.eq(1), final.eq(chosen.final),
                         *self._start(chosen, beat, stop[:3], stop, rest, record, plain, long)]

        self._give(m, output.i.payload, beat, first, stop, rest, record, plain, begins, long, final,
                   keys, taken)
        return m

    def _measure(self, m: Module, beats: list, advance: Value) -> list:
        """Return the end of an item at each position of the beat in the last but one stage."""
        found = []
        layout = data.StructLayout({"stop": range(RECORDS_PER_BEAT + 1), "rest": _SIZE_BITS,
                                    "final": 1, "plain": 1, "long": 1})
        for p in range(RECORDS_PER_BEAT):
            word = data.View(QueryBag, beats[0].data.word_select(p, RECORD_BITS))
            parts = data.StructLayout({"pairs": _SIZE_BITS, "halves": _SIZE_BITS,
                                       "weights": _SIZE_BITS, "plain": 1, "over": 1})
            part = Signal(parts, name=f"part{p}", reset_less=True)
            size = Signal(_SIZE_BITS + 2, name=f"size{p}")
            sized = Signal(_SIZE_BITS, name=f"sized{p}", reset_less=True)
            kept, long = (Signal(name=f"{name}{p}", reset_less=True) for name in ("plain", "long"))
            end, there = Signal(layout, name=f"end{p}", reset_less=True), Signal(4)
            pairs = (word.keys + 1) >> 1
            m.d.comb += [
                size.eq(part.pairs + part.halves + part.weights + 1),
                there.eq(beats[2].records - p),
            ]
            is_bag = ((word.kind == RecordKind.KEY_END) & word.bag) if self._plain else 1
            with m.If(advance):
                m.d.sync += [
                    # 1: the parts of the size.
                    part.pairs.eq(pairs), part.over.eq(pairs >> _SIZE_BITS - 1 != 0),
                    part.halves.eq(Mux(word.wide, word.keys >> 1, 0)),
                    part.weights.eq(Mux(word.weighted, pairs, 0)), part.plain.eq(~is_bag),
                    # 2: the size.
                    sized.eq(Mux(part.plain, 1, Mux(
                        part.over | (size > self._most), (1 << _SIZE_BITS) - 1, size))),
                    long.eq(~part.plain & (part.over | (size > self._most))), kept.eq(part.plain),
                    # 3: the end in this beat, and the rest behind it.
                    end.stop.eq(Mux(sized > there, beats[2].records, p + sized[:4])),
                    end.rest.eq(Mux(sized > there, sized - there, 0)),
                    end.final.eq(sized >= there), end.plain.eq(kept), end.long.eq(long),
                ]
            found.append(end)
        return found

    def _start(self, end, beat, place, stop, rest, record, plain, long) -> list:
        """Return the statements that make the item at ``place`` of ``beat`` the next one."""
        return [stop.eq(end.stop), rest.eq(end.rest), plain.eq(end.plain), long.eq(end.long),
                record.eq(beat.data.word_select(place, RECORD_BITS))]

    def _give(self, m: Module, o, beat, first, stop, rest, record, plain, begins, long, final,
              keys, taken) -> None:
        """Output the item, and count the keys that remain."""
        head, segment = data.View(BagHead, record), o.segment
        held, rows = Signal.like(keys), Signal(range(2 * RECORDS_PER_BEAT + 1))
        words = Signal(range(RECORDS_PER_BEAT + 1))
        m.d.comb += [
            segment.words.eq(beat.data), segment.first.eq(first), segment.size.eq(stop - first),
            segment.head.eq(begins & ~plain), segment.tail.eq((rest == 0) | o.cut),
            held.eq(Mux(begins, head.keys, keys)), segment.keys.eq(Mux(plain, 0, held)),
            words.eq(segment.size - begins), rows.eq(Mux(head.wide, words, words << 1)),
            o.record.eq(record), o.plain.eq(plain), o.long.eq(long),
            o.cut.eq((rest != 0) & final & beat.last), o.beat_last.eq(final),
        ]
        if "user" in self._beat.members:
            m.d.comb += o.user.eq(beat.user)
        with m.If(taken):
            m.d.sync += keys.eq(Mux(rows < held, held - rows, 0))
