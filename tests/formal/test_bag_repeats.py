"""Proofs of the repeats of bags: a bag repeats exactly if it equals the remembered bag at its
position of the previous sample of its step; every other bag leaves unchanged, whole and in order.

Samples of any slots arrive at any time, with any numbers and steps; two positions are remembered,
and a ring of four words. Bags have one to three keys, wide or weighted or both, in segments of one
or two words of a bit. A substitute for the word ring (``test_word_ring``) answers at once; it
states that no word is compared in the cycle after its storage. The bench remembers each kept bag
with all of its words. Bags that leave have one or two segments and any verdicts, and the queues are
short (``test_streams``, ``test_credit_queue``).
"""

import pytest
from amaranth.hdl import Cat, Mux, Signal

from rtl.formats import RecordKind
from tests.formal.bench import Bench
from tests.formal.induction import by_induction
from tests.formal.plain import TimedFIFO
from tests.formal.prove import prove
from tests.formal.remembering import Remembered
from tests.formal.repeating import AT, POSITIONS, AnyRam, AnyVerdict, block, slots_of
from tests.formal.wires import ShortQueue

LONGEST = 2
"""Segments of the longest bag that leaves."""
DEPTH = 12
"""Cycles searched for the fault of a mutant."""


def leaving(*edits: tuple[str, str]) -> Bench:
    """Return a bench of the slots and segments that leave; each bag gets any verdict."""
    bench = Bench()
    m = bench.m
    dut = block(*edits, bag_words=1, StreamFIFO=TimedFIFO, CreditQueue=ShortQueue,
                WordRing=AnyVerdict, Ram=AnyRam, QUEUE=2)
    m.d.comb += dut.enable.eq(bench.free(name="enable"))
    AnyRam.WORD = bench.free(dut._record.size, "word")
    m.submodules.dut = dut.elaborate(None)
    queue = m.submodules.dut.submodules.queue

    offered, again = Signal(slots_of(True)), bench.free(name="again")
    m.d.comb += [offered.eq(Cat(again, bench.free(slots_of(True).size - 1, "slot"))),
                 offered.sample.eq(0), offered.key.table.eq(0)]
    taken = bench.source(dut.slots, Cat(offered))
    slot, segment, inside, length = dut.slots.payload, dut.segments.payload, Signal(), Signal(2)
    m.d.comb += [
        dut.segments.valid.eq(bench.free(name="segment")), segment.head.eq(~inside),
        segment.size.eq(1), segment.tail.eq(bench.free(name="tail") | (length == LONGEST - 1)),
        segment.words.eq(Cat(slot.key.row[0], 0, bench.free(name="data")))]
    took = dut.segments.valid & dut.segments.ready
    at, out = Signal(AT), dut.o.payload
    bench.assume(~slot.bag | (slot.kind == RecordKind.KEY_END))
    with m.If(took):
        m.d.sync += [inside.eq(~segment.tail), length.eq(Mux(segment.tail, 0, length + 1))]
    with m.If(taken):
        m.d.sync += at.eq(Mux(slot.last, 0, Mux(
            (slot.kind == RecordKind.KEY) | (at == POSITIONS), at, at + 1)))

    left, sent = bench.sink(dut.o, "o"), bench.sink(dut.bags, "bags")
    parts = m.submodules.dut.submodules
    waiting, held = parts.waiting, parts.held
    # What enters and leaves the queues, which keep the order.
    stored, shown = waiting.i.payload, waiting.o.payload.slot
    bench.always("enters", ((waiting.i.valid & waiting.i.ready) == taken) & (~taken | (
        (Cat(stored.slot) == Cat(slot)) & (stored.position == at[:1]))))
    bench.always("is_held", ((held.i.valid & held.i.ready) == took) & (~took | (
        Cat(held.i.payload) == Cat(segment))))
    bench.always("leaves", (waiting.o.valid & waiting.o.ready) == left)
    again = shown.bag & shown.key.row[0]
    bench.always("itself", ~left | (Cat(*(out[name] for name in shown.shape().members)) == Cat(
        shown.key, Mux(again, RecordKind.EMPTY, shown.kind), shown.sample, shown.step, shown.last,
        shown.bag & ~again, shown.mine & ~again)))
    bench.always("repeat", ~left | ((out.repeat == again) & (
        out.position == waiting.o.payload.position)))
    gone, drops = held.o.valid & held.o.ready, held.o.payload.words[0]
    bench.always("its_segments", (sent == (gone & ~drops)) & (
        ~sent | (Cat(dut.bags.payload) == Cat(held.o.payload))))
    bench.always("kept", ~left | (out.kept == (queue.o.payload.kept & ~out.repeat)))
    bench.always("together", taken == Mux(slot.bag, took & segment.tail, taken))
    bench.always("its_own", ~took | (dut.slots.valid & slot.bag))
    bench.always("idle", ~dut.idle | ~(waiting.o.valid | held.o.valid | parts.decided.o.valid))
    return bench


@pytest.mark.thorough
def test_verdicts():
    remembered = Remembered()
    remembered.inside()
    verdict = by_induction(remembered.bench)
    assert verdict.holds, verdict


@pytest.mark.thorough
def test_leaving():
    verdict = prove(leaving())
    assert verdict.holds, verdict


@pytest.mark.parametrize("wrong, old, new", [
    ("repeats", "position < before", "position != self._positions"),
    ("repeats", "(slot.sample == sample) & (slot.step == step)", "(slot.sample == sample)"),
    ("repeats", "(slot.sample == sample) & (slot.step == step)", "(slot.step == step)"),
    ("repeats", "sample.eq(slot.sample + 1)", "sample.eq(slot.sample)"),
    ("repeats", "item.follows & record.valid & item.begins", "item.follows & item.begins"),
    ("repeats", "record.head == item.head", "record.head.table == item.head.table"),
    ("repeats", "record.head == item.head", "record.head.keys == item.head.keys"),
    ("kept", "counts.eq(slot.kind != RecordKind.KEY)", "counts.eq(1)"),
    ("repeats", "near.eq(NEAR - 1)", "near.eq(NEAR - 2)"),
    ("repeats", "position < NEAR - 1", "position < NEAR - 2"),
    ("head_told", "item.head.eq(item.head)", "item.head.keys.eq(item.head.keys)"),
    ("repeats", "old.eq(Mux(here.begins, here.start, old_next))", "old.eq(here.start)"),
    ("repeats", "new_next.eq(new + words)", "new_next.eq(new)"),
    ("repeats", "words.eq(segment.size - segment.head)", "words.eq(segment.size)"),
    ("repeats", "tail.eq(tail + added)", "tail.eq(tail + here.words)"),
    ("repeats", "given.payload.writes.eq(kept)", "given.payload.writes.eq(fits)"),
    ("repeats", "queue.i.payload.repeat.eq(ring.o.valid & ring.o.equal)",
     "queue.i.payload.repeat.eq(ring.o.equal)"),
    ("kept", "base <= here.margin", "base < here.margin"),
    ("kept", "fits.eq(here.stores & (base <= here.margin))", "fits.eq(here.stores)"),
    ("kept", "kept.eq(Mux(here.begins, fits, writes))", "kept.eq(fits)"),
    ("kept", "Mux(here.first, 0, own) + added", "own + added"),
    ("kept", "here.change[0].eq(-gone)", "here.change[0].eq(0)"),
    ("kept", "Mux(here.follows, own, 0)", "own"),
    ("kept", "stores.eq(slot.bag & self.enable & small)", "stores.eq(slot.bag & small)"),
    ("kept", "Mux(head.weighted, pairs, 0)", "0"),
], ids=["shorter-sample", "other-step", "rejected", "same-number", "not-kept", "any-keys",
        "any-table", "each-key", "read-too-soon", "two-bags", "later-head", "first-place",
        "one-place", "head-too", "not-kept-too", "only-first", "no-verdict", "last-word",
        "always-fits", "later-segment", "own-of-all", "nothing-gone", "of-another-step", "disabled",
        "weights"])
def test_broken_verdicts(wrong, old, new):
    verdict = prove(Remembered((old, new)).bench, depth=DEPTH)
    assert wrong in verdict.broken, verdict


@pytest.mark.parametrize("wrong, old, new", [
    ({"its_segments"}, "drops.eq(decided.o.payload)", "drops.eq(0)"),
    ({"its_segments", "bags_holds"}, "held.o.valid & decided.o.valid & ~drops",
     "held.o.valid & ~drops"),
    ({"its_segments"}, "held.o.ready & held.o.payload.tail", "held.o.ready"),
    ({"its_segments"}, "decided.i.valid.eq(given & slot.bag)", "decided.i.valid.eq(given)"),
    ({"o_holds"}, "decided.i.valid.eq(given & slot.bag)",
     "decided.i.valid.eq(self.o.valid & slot.bag)"),
    ({"leaves"}, "waiting.o.valid & queue.o.valid & decided.i.ready",
     "waiting.o.valid & queue.o.valid"),
    ({"leaves"}, "waiting.o.ready.eq(queue.o.valid & ready)", "waiting.o.ready.eq(ready)"),
    ({"repeat", "itself"}, "[here.valid & here.ends]", "[here.valid]"),
    ({"repeat", "itself"}, "queue.free & waiting.i.ready", "waiting.i.ready"),
    ({"is_held"}, "& held.i.ready & (near == 0)", "& (near == 0)"),
    ({"is_held"}, "held.i.valid.eq(go & slot.bag)", "held.i.valid.eq(go)"),
    ({"enters"}, "front.o.ready.eq(go & ends)", "front.o.ready.eq(go)"),
    ({"is_held"}, "words.o.ready.eq(go & slot.bag)", "words.o.ready.eq(go)"),
    ({"itself"}, "o.bag.eq(0), o.mine.eq(0)", "o.bag.eq(0)"),
    ({"itself"}, "with m.If(verdict.repeat)", "with m.If(verdict.kept)"),
    ({"kept"}, "o.kept.eq(verdict.kept & ~verdict.repeat)", "o.kept.eq(verdict.kept)"),
    ({"idle"}, "words.idle & waiting.idle & held.idle", "words.idle & held.idle"),
], ids=["not-dropped", "before-its-verdict", "one-segment", "any-slot", "again", "no-room",
        "before", "each-segment", "no-place", "segment-lost",
        "no-segment", "slot-per-segment", "segment-of-no-bag", "mine", "kept-is-empty",
        "kept-repeat", "idle-too-soon"])
def test_broken_leaving(wrong, old, new):
    verdict = prove(leaving((old, new)), depth=DEPTH)
    assert wrong & set(verdict.broken), verdict
