"""Segment split: splits beats into the records and the segments of bags that they contain."""

from itertools import pairwise

from amaranth.hdl import C, Cat, Module, Mux, ShapeLike, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.bags.layouts import GRADIENT_WORDS, split_beat, split_item
from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT, BagHead, GradientHead, QueryBag, RecordKind
from rtl.stream import SkidBuffer

__all__ = ["SegmentSplit"]

_STAGES = 3
"""Cycles in which the size of an item at each position of a beat is computed."""
_SIZE_BITS = 12
"""Bits of the size of an item. The rest of a bag that is too long is the largest number, which
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
    gradients: bags may have gradients (:data:`~rtl.formats.GradientHead`).

    Ports
    -----
    i: stream of :func:`rtl.bags.layouts.split_beat`.
    o: stream of :func:`rtl.bags.layouts.split_item`.
    gradient_words (``gradients``): words of a gradient; may change while idle.
    idle: no beat inside.

    Raises ``ValueError`` for ``most`` out of range.
    """

    LATENCY = {("beat", "its first item"): _STAGES + 2}
    RATE = "1 item per cycle"

    def __init__(self, user: ShapeLike, most: int, *, plain: bool = True,
                 gradients: bool = False):
        limit = RECORDS_PER_BEAT * 140
        if isinstance(most, bool) or not isinstance(most, int) or not 2 <= most <= limit:
            raise ValueError(f"most must be between 2 and {limit}, not {most!r}")
        self._most, self._plain, self._gradients = most, plain, gradients
        self._beat, self._item = split_beat(user), split_item(user)
        super().__init__({"i": In(stream.Signature(self._beat)),
                          "o": Out(stream.Signature(self._item)), "idle": Out(1),
                          **({"gradient_words": In(GRADIENT_WORDS)} if gradients else {})})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.output = output = SkidBuffer(self._item)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        beats = [self.i.payload] + [Signal(self._beat, name=f"beat{k}", reset_less=True)
                                    for k in range(_STAGES + 1)]
        valids = [self.i.valid] + [Signal(name=f"valid{k}") for k in range(_STAGES + 1)]
        beat, busy, final = beats[-1], valids[-1], Signal(init=1)
        advance, taken = Signal(), Signal()
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
        # The last beat stays until the next beat, which may continue its bag.
        m.d.comb += comes.eq(advance & valids[-2])
        with m.If(comes):
            m.d.sync += [beat.eq(beats[-2]),
                         *(after.eq(before) for after, before in zip(here, ahead))]

        # The item that leaves: its words, the rest of its bag in later beats, and its record.
        first, stop = Signal(range(RECORDS_PER_BEAT)), Signal(range(RECORDS_PER_BEAT + 1))
        size, rest, record = Signal.like(stop), Signal(_SIZE_BITS), Signal(
            RECORD_BITS, reset_less=True)
        plain, begins, long = Signal(), Signal(), Signal()
        keys, goes_on = Signal(BagHead["keys"].width, reset_less=True), Signal()
        more, left, load = beats[-2].records, Signal(signed(_SIZE_BITS + 1)), Signal()
        items = data.ArrayLayout(ahead[0].shape(), RECORDS_PER_BEAT)
        chosen = data.View(items, Cat(here))[stop[:3]]
        m.d.comb += [
            goes_on.eq((rest != 0) & ~beat.last & ~beats[-2].fresh), left.eq(rest - more),
            # Without a beat, ``final`` is 1, so registers decide whether the beat goes on.
            load.eq(Mux(final, valids[-2] & (~busy | output.i.ready), taken)),
        ]
        with m.If(load):
            m.d.sync += [first.eq(Mux(final, 0, stop)), begins.eq(~final | ~goes_on)]
            with m.If(final & goes_on):
                # The bag in the next beat.
                begin = Mux(left[-1], rest, more)
                m.d.sync += [stop.eq(begin), size.eq(begin), rest.eq(Mux(left[-1], 0, left)),
                             final.eq(~left[-1])]
            with m.Else():
                # The first item of the next beat, or the next item of this one.
                end = Mux(final, ahead[0], chosen)
                word = beat.data.word_select(stop[:3], RECORD_BITS)
                end = data.View(items.elem_shape, end)
                m.d.sync += [
                    stop.eq(end.stop), size.eq(end.size), rest.eq(end.rest), plain.eq(end.plain),
                    long.eq(end.long), final.eq(end.final),
                    record.eq(Mux(final, beats[-2].data[:RECORD_BITS], word)),
                ]

        self._give(m, output.i.payload, beat, first, size, rest, record, plain, begins, long, final,
                   keys, taken)
        return m

    def _measure(self, m: Module, beats: list, advance: Value) -> list:
        """Return the end of an item at each position of the beat in the last but one stage."""
        found = []
        layout = data.StructLayout({"stop": range(RECORDS_PER_BEAT + 1), "rest": _SIZE_BITS,
                                    "size": range(RECORDS_PER_BEAT + 1), "final": 1,
                                    "plain": 1, "long": 1})
        for p in range(RECORDS_PER_BEAT):
            word = data.View(QueryBag, beats[0].data.word_select(p, RECORD_BITS))
            parts = data.StructLayout({
                "most": _SIZE_BITS, "more": _SIZE_BITS, "plain": 1, "over": 1})
            part = Signal(parts, name=f"part{p}", reset_less=True)
            size = Signal(_SIZE_BITS + 2, name=f"size{p}")
            sized = Signal(_SIZE_BITS, name=f"sized{p}", reset_less=True)
            kept, long = (Signal(name=f"{name}{p}", reset_less=True) for name in ("plain", "long"))
            end, there = Signal(layout, name=f"end{p}", reset_less=True), Signal(4)
            left, beyond = Signal(signed(_SIZE_BITS + 1), name=f"left{p}"), Signal()
            pairs = (word.keys + 1) >> 1
            behind = Mux(word.weighted, Mux(word.wide, pairs, word.keys[0]), 0)
            if self._gradients:
                of_gradient = data.View(GradientHead, Value.cast(word)).gradient
                behind = Mux(of_gradient, self.gradient_words, behind)
            m.d.comb += [
                # The lowest bits carry 1, for the head.
                size.eq((Cat(C(1, 1), part.most) + Cat(C(1, 1), part.more))[1:]),
                there.eq(beats[2].records - p), left.eq(sized - there),
                beyond.eq(long | ~left[-1]),
            ]
            is_bag = ((word.kind == RecordKind.KEY_END) & word.bag) if self._plain else 1
            with m.If(advance):
                m.d.sync += [
                    # 1: two numbers whose sum is :func:`rtl.formats.words_of`.
                    part.most.eq(Mux(word.wide | word.weighted, word.keys, pairs)),
                    part.more.eq(behind),
                    part.over.eq(pairs >> _SIZE_BITS - 1 != 0), part.plain.eq(~is_bag),
                    # 2: the size.
                    sized.eq(Mux(part.plain, 1, size)),
                    long.eq(~part.plain & (part.over | (size > self._most))), kept.eq(part.plain),
                    # 3: the end in this beat, and the rest behind it.
                    end.stop.eq(Mux(beyond, beats[2].records, p + sized[:4])),
                    end.size.eq(Mux(beyond, there, sized[:4])),
                    end.rest.eq(Mux(long, (1 << _SIZE_BITS) - 1, Mux(left[-1], 0, left))),
                    end.final.eq(beyond), end.plain.eq(kept), end.long.eq(long),
                ]
            found.append(end)
        return found

    def _give(self, m: Module, o, beat, first, size, rest, record, plain, begins, long, final,
              keys, taken) -> None:
        """Output the item, and count the keys that remain."""
        head, segment = data.View(BagHead, record), o.segment
        held, rows = Signal.like(keys), Signal(range(2 * RECORDS_PER_BEAT + 1))
        after = Signal(signed(len(keys) + 1))
        words = Signal(range(RECORDS_PER_BEAT + 1))
        m.d.comb += [
            segment.words.eq(beat.data), segment.first.eq(first), segment.size.eq(size),
            segment.head.eq(begins & ~plain), segment.tail.eq((rest == 0) | o.cut),
            held.eq(Mux(begins, head.keys, keys)), segment.keys.eq(Mux(plain, 0, held)),
            words.eq(size - begins), rows.eq(Mux(head.wide, words, words << 1)),
            o.record.eq(record), o.plain.eq(plain), o.long.eq(long),
            after.eq(held - rows), o.cut.eq((rest != 0) & final & beat.last), o.beat_last.eq(final),
        ]
        if "user" in self._beat.members:
            m.d.comb += o.user.eq(beat.user)
        with m.If(taken):
            m.d.sync += keys.eq(Mux(after[-1], 0, after))
