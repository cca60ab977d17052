"""Proof of the bag sender: each bag that may leave has its own words, once and in order, and the
tag that its owner was asked with.

Starts, ids and bags of any length arrive at any time, and both outputs stall at any time. A bag
begins at any word of a beat; the bits of the other words differ from those of its head. The skid
buffers are wires (``test_streams``).
"""

import pytest
from amaranth.hdl import Cat, Mux, Signal, Value
from amaranth.lib import data, stream

from rtl.bags.layouts import BagStart, Segment
from rtl.bags.sender import BagSender
from rtl.formats import RECORD_BITS, RECORDS_PER_BEAT, GradientHead, words_of
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.wires import Wires
from tests.mutants import variant

_HEAD = data.StructLayout({"wide": 1, "weighted": 1, "gradient": 1, "bit": 1})
_ITEM = data.StructLayout({"head": _HEAD, "first": 3, "tail": 1, "keys": 2})
DEPTH = 11
"""Cycles searched for the fault of a mutant."""


def sent(*edits: tuple[str, str], gradients: bool = False) -> Bench:
    """Return a bench that follows the bag whose segments pass."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(BagSender, *edits, SkidBuffer=Wires)(gradients=gradients)

    start, now = Signal(BagStart), Signal(data.StructLayout(
        {"destination": 1, "step": 1, "landing": 2, "own": 1}))
    m.d.comb += [now.eq(bench.free(len(Value.cast(now)), "start")),
                 *(start[name].eq(now[name]) for name in now.shape().members)]
    begins = bench.source(dut.starts, Cat(start))
    tags = bench.source(dut.id, bench.free(2, "tag"))

    # The next segment: the head of a bag, or its next words.
    items, inside = stream.Signature(_ITEM).create(), Signal()
    item, coming = items.payload, dut.segments.payload
    came = bench.source(items)
    m.d.comb += [
        dut.segments.valid.eq(items.valid), items.ready.eq(dut.segments.ready),
        coming.head.eq(~inside), coming.first.eq(item.first), coming.size.eq(1),
        coming.tail.eq(item.tail), coming.keys.eq(item.keys)]
    for k in range(RECORDS_PER_BEAT):
        bits = data.View(_HEAD, Mux(coming.first == k, Cat(item.head), ~Cat(item.head)))
        made = data.View(GradientHead, coming.words.word_select(k, RECORD_BITS))
        m.d.comb += [*(made[name].eq(bits[name]) for name in ("wide", "weighted", "gradient")),
                     made.keys.eq(Mux(coming.first == k, item.keys, 0)), made.landing.eq(bits.bit)]
    with m.If(came):
        m.d.sync += inside.eq(~coming.tail)

    # The bag that has started: a bag of another owner has the tag that was taken for it.
    open_, bag, size = Signal(), Signal.like(now), Signal(4)
    of_owner = begins & ~dut.starts.payload.own
    with m.If(begins):
        m.d.sync += [open_.eq(1), *(bag[name].eq(dut.starts.payload[name])
                                    for name in now.shape().members)]
        with m.If(of_owner):
            m.d.sync += bag.landing.eq(dut.id.payload)
    with m.Elif(came & coming.tail):
        m.d.sync += open_.eq(0)
    asked = dut.asked
    bench.always("one_id", (tags == of_owner) & (asked.valid == of_owner))
    bench.always("asked", ~asked.valid | (
        (asked.node == dut.starts.payload.destination)
        & (asked.place == dut.starts.payload.landing)))
    bench.always("one_bag", ~(begins & open_) | (came & coming.tail))

    # Each segment leaves once, to the owner of its bag, unchanged but for its head.
    expected = Signal(Segment)
    m.d.comb += expected.eq(coming)
    for k in range(RECORDS_PER_BEAT):
        made = data.View(GradientHead, expected.words.word_select(k, RECORD_BITS))
        with m.If(coming.head & (coming.first == k)):
            m.d.comb += made.landing.eq(bag.landing)
            if gradients:
                m.d.comb += made.gradient.eq(0)
    words = Mux(coming.head, 1 + words_of(item.keys, item.head.wide, item.head.weighted), size)
    with m.If(came & coming.head):
        m.d.sync += size.eq(words)
    out, own = dut.o.payload, dut.own.payload
    left = [bench.sink(port, name, Cat(port.payload.segment.first, port.payload.segment.keys))
            for name, port in (("o", dut.o), ("own", dut.own))]
    bench.always("once", came == (left[0] ^ left[1]))
    bench.always("started", ~came | open_)
    bench.always("its_owner", ~came | ((left[1] == bag.own) & Mux(
        bag.own, (own.node == bag.destination) & (own.step == bag.step),
        (out.destination == bag.destination) & (out.step == bag.step))))
    bench.always("itself", ~came | (
        Cat(Mux(bag.own, own.segment.as_value(), out.segment.as_value())) == Cat(expected)))
    bench.always("words", ~left[0] | (out.words == words))
    bench.always("idle", ~dut.idle | ~open_)

    # A bag waits for its start, its words, and its own output only.
    takes = Mux(bag.own, dut.own.ready, dut.o.ready)
    bench.always("moves", ~(open_ & dut.segments.valid & takes) | came)
    bench.always("starts", ~(~open_ & dut.starts.valid & (
        dut.starts.payload.own | dut.id.valid)) | begins)
    return bench


@pytest.mark.parametrize("gradients", [False, True])
def test_bag_sender(gradients):
    verdict = prove(sent(gradients=gradients))
    assert verdict.holds, verdict


@pytest.mark.parametrize("wrong, old, new", [
    ({"one_bag"}, "room.eq(~inside | ends)", "room.eq(1)"),
    ({"one_id"}, "self.id.ready.eq(room & self.starts.valid & ~start.own)",
     "self.id.ready.eq(room & self.starts.valid)"),
    ({"started", "once"}, "buffer.o.ready.eq(inside & output.i.ready)",
     "buffer.o.ready.eq(output.i.ready)"),
    ({"itself"}, "bag.landing.eq(self.id.payload)", "bag.landing.eq(start.landing)"),
    ({"itself"}, "m.If(segment.head & (segment.first == k))", "m.If(segment.first == k)"),
    ({"itself"}, "gradient.eq(0)", "gradient.eq(1)"),
    ({"once", "its_owner"}, "Mux(sent.own, self.own.ready, self.o.ready)", "self.o.ready"),
    ({"words"}, "Mux(headed.wide, segment.keys, pairs)", "pairs"),
    ({"words"}, "Mux(headed.weighted, pairs, 0)", "Mux(headed.weighted, segment.keys, 0)"),
    ({"idle"}, "self.idle.eq(~inside &", "self.idle.eq("),
], ids=["another-start", "id-of-no-bag", "before-its-start", "place-of-this-node",
        "in-each-segment", "gradient", "other-output", "wide", "weights",
        "idle-inside"])
def test_broken_bag_sender(wrong, old, new):
    verdict = prove(sent((old, new), gradients=True), depth=DEPTH)
    assert wrong & set(verdict.broken), verdict
