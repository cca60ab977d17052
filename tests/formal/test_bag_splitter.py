"""Proof of the splitter of bags: each word of a bag is in one segment, in order, from its head to
its tail.

Beats have one or two words, of any bags, records and gradients; a bag may have more words than are
allowed, and any beat may be the last of its packet, or ``fresh``. Sizes have five bits. The skid
buffer is a wire (``test_streams``). Each item is compared with the words of its beat and with the
items before it.
"""

import pytest
from amaranth.hdl import C, Cat, Mux, Signal, Value
from amaranth.lib import data, stream

from rtl.bags.splitter import SegmentSplit
from rtl.formats import RECORD_BITS, GradientHead, QueryBag, RecordKind
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.shown import LOCALS
from tests.formal.wires import Wires
from tests.mutants import variant

WORDS, MOST, LONGEST = 2, 6, 8
"""Words of a beat and of the longest bag; beats of the longest packet."""
STAGES = 5
DEPTH = 10
"""Cycles searched for the fault of a mutant."""
SIZE_BITS = 5
MANY = (1 << SIZE_BITS) - 1
_SHOWN = [("        return m\n", f"        {LOCALS.format('inner')}return m\n"),
          ("found.append(end)", "found.append(end); self.parts = [*getattr(self, 'parts', []), "
                                "(part, sized, kept, long)]")]
_WORD = data.StructLayout({"keys": 3, "high": 1, "wide": 1, "weighted": 1, "other": 1})
_BEAT = data.StructLayout(
    {"words": data.ArrayLayout(_WORD, WORDS), "records": 2, "last": 1, "fresh": 1})


def split(*edits: tuple[str, str], gradients: bool = False, inside: bool = True) -> Bench:
    """Return a bench that measures each item by its own words.

    gradients: each item is a bag, some with gradients; otherwise some are records.
    inside: state the registers of each stage, which makes all statements inductive.
    """
    bench = Bench()
    m = bench.m
    dut = variant(
        SegmentSplit, *edits, *_SHOWN, SkidBuffer=Wires, RECORDS_PER_BEAT=WORDS,
        _SIZE_BITS=SIZE_BITS)(_BEAT, MOST, plain=not gradients, gradients=gradients)
    dut._MustUse__silence = True  # elaborated here, because statements refer to its parts
    m.submodules.dut = dut.elaborate(None)
    gradient_words = bench.constant(2, "gradient_words") if gradients else None
    beats = stream.Signature(_BEAT).create()
    beat, given = beats.payload, dut.i.payload
    entered = bench.source(beats)
    m.d.comb += [
        dut.i.valid.eq(beats.valid), beats.ready.eq(dut.i.ready), given.user.eq(beat),
        given.records.eq(beat.records), given.last.eq(beat.last), given.fresh.eq(beat.fresh)]
    if gradient_words is not None:
        m.d.comb += dut.gradient_words.eq(gradient_words)
    for k in range(WORDS):
        word, made = beat.words[k], Signal(GradientHead if gradients else QueryBag, name=f"made{k}")
        m.d.comb += [given.data.word_select(k, RECORD_BITS).eq(made),
                     made.keys.eq(Cat(word.keys, C(0, 12), word.high)), made.wide.eq(word.wide),
                     made.weighted.eq(word.weighted)]
        if gradients:
            m.d.comb += made.gradient.eq(word.other)
        else:
            m.d.comb += [made.kind.eq(RecordKind.KEY_END), made.bag.eq(word.other)]

    # Beats leave in order, each with its last item.
    item, segment, of = dut.o.payload, dut.o.payload.segment, dut.o.payload.user
    left = bench.sink(dut.o, "o", Cat(of, segment.first, segment.size))
    held = bench.in_order("beats", entered, Cat(beat), left & item.beat_last, Cat(of), STAGES)
    bench.within("leaves", STAGES, dut.o.ready & (held != 0), left)
    bench.always("idle", ~dut.idle | (held == 0))

    # The items of a beat follow each other. The item before it may continue.
    stop, rest, endless, ended = Signal(2), Signal(SIZE_BITS), Signal(), Signal(init=1)
    whole, gone, head = Signal(5), Signal(5), Signal(_WORD)
    begins, word, long, length = Signal(), Signal(_WORD), Signal(), Signal(range(LONGEST + 1))
    m.d.comb += [
        begins.eq((stop != 0) | ended | of.fresh | ((rest == 0) & ~endless)),
        word.eq(Mux(begins, Mux(segment.first[0], of.words[1], of.words[0]), head))]
    plain, size_of, of_long = _measured(word, gradient_words)
    m.d.comb += [whole.eq(size_of), long.eq(of_long)]
    room = (of.records - stop)[:2]
    owed = Mux(begins, whole, rest)
    over = Mux(begins, long, endless) | (owed > room)
    size = Mux(over, room, owed)
    cut = over & of.last
    with m.If(left & item.beat_last):
        m.d.sync += length.eq(Mux(of.last, 0, length + 1))
    bench.assume((beat.records == 1) | (beat.records == 2), length < LONGEST)
    with m.If(left):
        m.d.sync += [
            stop.eq(Mux(item.beat_last, 0, stop + size)), head.eq(word),
            rest.eq(Mux(over, owed - room, 0)), endless.eq(Mux(begins, long, endless)),
            ended.eq(of.last & item.beat_last), gone.eq(Mux(begins, 0, gone) + size)]
    bench.always("follows", ~dut.o.valid | (segment.first == stop))
    bench.always("size", ~dut.o.valid | (segment.size == size))
    bench.always("beat_last", ~dut.o.valid | (item.beat_last == (stop + size == of.records)))
    bench.always("words", ~dut.o.valid | Cat(
        _bits(segment.words.word_select(k, RECORD_BITS), gradients) == Cat(of.words[k])
        for k in range(WORDS)).all())
    bench.always("record", ~dut.o.valid | (_bits(item.record, gradients) == Cat(word)))
    bench.always("head", ~dut.o.valid | (
        (segment.head == (begins & ~plain)) & (item.plain == plain)))
    bench.always("tail", ~dut.o.valid | ((segment.tail == (~over | cut)) & (item.cut == cut)))
    bench.always("long", ~dut.o.valid | (item.long == long))

    # Keys of the bag whose rows are not in earlier segments.
    before = Mux(begins, 0, gone - 1)
    of_rows = Mux(word.wide, before, before << 1)
    known = Mux(word.keys > of_rows, word.keys - of_rows, 0)
    bench.always("keys", ~dut.o.valid | plain | word.high | (segment.keys == known))

    if not inside:
        return bench

    # The registers of each stage fit the words of its beat.
    inner, line, valids = dut.inner, dut.inner["beats"], dut.inner["valids"]
    for k in range(1, STAGES):
        here = line[k]
        kept = here.user
        bench.always(f"beat_{k}", ~valids[k] | (
            (here.records == kept.records) & (here.last == kept.last) & (here.fresh == kept.fresh)
            & ((kept.records == 1) | (kept.records == 2)) & Cat(
                _bits(here.data.word_select(n, RECORD_BITS), gradients) == Cat(kept.words[n])
                for n in range(WORDS)).all()))
    for n in range(WORDS):
        part, sized, of_plain, too_long = dut.parts[n]
        for k, found in ((1, part), (2, sized), (3, inner["ahead"][n]), (4, inner["here"][n])):
            kept = line[k].user
            is_plain, words, is_long = _measured(kept.words[n], gradient_words)
            high, there = kept.words[n].high, (kept.records - n)[:2]
            if k == 1:
                good = (part.plain == is_plain) & (is_plain | (part.over == high)) & (
                    is_plain | high | (part.most + part.more + 1 == words))
            elif k == 2:
                good = (of_plain == is_plain) & (too_long == is_long) & (is_long | (sized == words))
            else:
                beyond = is_long | (words >= there)
                good = (
                    (found.plain == is_plain) & (found.long == is_long) & (found.final == beyond)
                    & (found.stop == Mux(beyond, kept.records, n + words))
                    & (found.size == Mux(beyond, there, words)) & (found.rest == Mux(
                        is_long, MANY, Mux(beyond, words - there, 0))))
            bench.always(f"end_{n}_{k}", ~valids[k] | (kept.records <= n) | good)

    # The registers of the item, and what is left of its bag.
    spent, after = Signal(SIZE_BITS), Signal(SIZE_BITS)
    with m.If(left):
        m.d.sync += spent.eq(Mux(begins, 0, spent + size))
    first, end, busy = inner["first"], inner["stop"], valids[4]
    m.d.comb += after.eq(Mux(
        busy, Mux(over, Mux(Mux(begins, long, endless), MANY - Mux(begins, 0, spent + size),
                            owed - room), 0),
        Mux(endless, MANY - spent, rest)))
    bench.always("rest", (inner["rest"] == after) | (~busy & ended))
    bench.always("end", ~busy | ((end == stop + size) & (first == stop)))
    bench.always("final", busy | (inner["final"] & (stop == 0)))
    bench.always("last", busy | ended | (line[4].last == 0))
    bench.always("few", ended | (spent <= 2 * length))
    bench.always("held", ~busy | begins | (inner["keys"] == known) | word.high)
    return bench


def _bits(word: Value, gradients: bool) -> Value:
    """Return the bits of a word that the bench chooses, as :data:`_WORD`."""
    view = data.View(GradientHead if gradients else QueryBag, word)
    return Value.cast(Cat(view.keys[:3], view.keys[15], view.wide, view.weighted,
               view.gradient if gradients else view.bag))


def _measured(word: data.View, gradient_words: Value | None) -> tuple[Value, Value, Value]:
    """Return whether ``word`` is a record, the words of its item, and whether they are too many."""
    pairs = (word.keys + 1) >> 1
    rows, behind = Mux(word.wide, word.keys, pairs), Mux(word.weighted, pairs, 0)
    if gradient_words is not None:
        # A gradient with weights has any size: the check drops it.
        rows = Mux(word.other & word.weighted, word.keys, rows)
        behind = Mux(word.other, gradient_words, behind)
    plain = C(0, 1) if gradient_words is not None else ~word.other
    words = Mux(plain, 1, 1 + rows + behind)
    return plain, words, ~plain & (word.high | (words > MOST))


@pytest.mark.thorough
@pytest.mark.parametrize("gradients", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_bag_splitter(gradients):
    verdict = prove(split(gradients=gradients))
    assert verdict.holds, verdict


@pytest.mark.parametrize("wrong, gradients, old, new", [
    ({"size"}, False, "end.size.eq(Mux(beyond, there, sized[:4]))", "end.size.eq(there)"),
    ({"follows"}, False, "end.stop.eq(Mux(beyond, beats[2].records, p + sized[:4]))",
     "end.stop.eq(beats[2].records)"),
    ({"size", "head"}, False, "& ~beat.last & ~beats[-2].fresh", "& ~beat.last"),
    ({"size", "head"}, False, "& ~beat.last & ~beats[-2].fresh", "& ~beats[-2].fresh"),
    ({"keys"}, False, "keys.eq(Mux(after[-1], 0, after))", "keys.eq(after)"),
    ({"keys"}, False, "Mux(head.wide, words, words << 1)", "words << 1"),
    ({"keys"}, False, "words.eq(size - begins)", "words.eq(size)"),
    ({"tail"}, False, "& final & beat.last)", "& final)"),
    ({"tail"}, False, "(rest == 0) | o.cut", "rest == 0"),
    ({"record", "size"}, False, "Mux(final, beats[-2].data[:RECORD_BITS], word)", "word"),
    ({"long"}, False, "size > self._most", "size > self._most + 1"),
    ({"long", "size"}, False, "part.over.eq(pairs >> _SIZE_BITS - 1 != 0)", "part.over.eq(0)"),
    ({"size", "tail"}, True, "Mux(of_gradient, self.gradient_words, behind)", "behind"),
    ({"beats_in_order", "size"}, False, "comes.eq(advance & valids[-2])", "comes.eq(advance)"),
], ids=["whole-beat", "one-item", "behind-a-gap", "across-packets", "keys-below-0", "wide",
        "head-as-a-row", "cut-always", "no-tail", "record-before", "too-long", "many-keys",
        "no-gradient", "last-beat-lost"])
def test_broken_bag_splitter(wrong, gradients, old, new):
    verdict = prove(split((old, new), gradients=gradients, inside=False), depth=DEPTH)
    assert wrong & set(verdict.broken), verdict
