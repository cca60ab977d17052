"""Search of the places of owner-pooled bags: a place has one bag at a time, and only the first
vector for a place returns to the origin of its bag.

There are two places, and vectors of one beat of one bit. Bags of any length arrive at any time, and
vectors for places that exist or not. The solver picks a bag: its head has node 1, all others have
node 0. The skid buffers are wires, and the queue behind the landing rows has two places
(``test_streams``, ``test_credit_queue``). The search covers the first cycles, in which places
are used again.
"""

from types import SimpleNamespace

import pytest
from amaranth.hdl import Cat, Mux, Signal, Value

from rtl.bags.layouts import OwnedSegment
from rtl.bags.places import OwnerPlaces
from rtl.formats import RECORD_BITS, BagHead, SizedBeat
from tests.formal.bench import Bench
from tests.formal.plain import plain_queue
from tests.formal.prove import prove
from tests.formal.wires import Wires
from tests.mutants import variant

PLACES, QUEUE, DEPTH = 2, 2, 20
SIZES = SimpleNamespace(owner_bags=PLACES, vector_beats=1, store_bits=1)
LANDING = slice(BagHead["landing"].offset, RECORD_BITS)


def placed(*edits: tuple[str, str]) -> Bench:
    """Return a bench that follows a picked bag from its head to its vector."""
    bench = Bench()
    m = bench.m
    queue, _, _ = plain_queue(SizedBeat, QUEUE)
    m.submodules.dut = dut = variant(
        OwnerPlaces, *edits, CreditQueue=queue, SkidBuffer=Wires)(SIZES)
    item = Signal(OwnedSegment)
    inside, picked, kept_landing = Signal(), Signal(), Signal()
    picks = bench.free(name="picks") & ~picked & ~inside
    landing, tail = bench.free(name="landing"), bench.free(name="tail")
    m.d.comb += [
        item.segment.size.eq(1), item.segment.head.eq(~inside), item.segment.tail.eq(tail),
        item.node.eq(picks), item.step.eq(landing),
        item.segment.words[LANDING.start].eq(landing)]
    came = bench.source(dut.foreign, Value.cast(item))
    entering = dut.foreign.payload
    with m.If(came):
        m.d.sync += inside.eq(~entering.segment.tail)
        with m.If(entering.node[0]):
            m.d.sync += [picked.eq(1), kept_landing.eq(entering.step[0])]

    out = dut.o.payload
    left = bench.sink(dut.o, "o", Cat(
        out.segment.head, out.segment.tail, out.segment.words[:RECORD_BITS], out.step))
    place, leaves_now = out.segment.words[LANDING], left & out.segment.head
    # One segment is inside at most, so the last that entered is the next to leave.
    within, of_picked = Signal(range(3)), Signal()
    m.d.sync += within.eq(within + came - left)
    with m.If(came):
        m.d.sync += of_picked.eq(entering.node[0])
    bench.always("short", within <= 1)
    bench.always("exists", ~leaves_now | (place < PLACES))

    # Vectors, and which one is the picked bag's.
    tag, bit = bench.free(2, "tag"), bench.free(name="bit")
    m.d.comb += [
        dut.vectors.valid.eq(bench.free(name="vector")),
        dut.vectors.payload.tag.eq(tag), dut.vectors.payload.data.eq(bit),
        dut.vectors.payload.last.eq(1)]
    waits, given, is_picked = Signal(), Signal(), Signal()
    mine, value, done = Signal(range(PLACES)), Signal(), Signal()
    m.d.comb += is_picked.eq(leaves_now & of_picked)
    # A vector may come in the cycle in which the head leaves.
    comes = dut.vectors.valid & dut.vectors.ready & Mux(
        is_picked, tag == place, waits & (tag == mine))
    with m.If(is_picked):
        m.d.sync += [waits.eq(1), mine.eq(place)]
    with m.If(comes):
        m.d.sync += [waits.eq(0), given.eq(1), value.eq(bit)]
    answer = dut.answers.payload
    leaves = bench.sink(dut.answers, "answers", Cat(answer.data[0], answer.tag, answer.last))
    back = leaves & answer.tag.node[0]
    with m.If(back):
        m.d.sync += [given.eq(0), done.eq(1)]
    bench.always("once", ~back | (given & ~done))
    bench.always("vector", ~back | ((answer.data[0] == value)
                                    & (answer.tag.landing == kept_landing)
                                    & (answer.tag.step == kept_landing) & answer.last))
    # The place is free when its landing row was read; until then no other bag has it.
    bench.always("alone", ~(leaves_now & waits) | (place != mine))
    bench.within("returns", 16, given & dut.answers.ready, back | ~given)
    bench.always("idle", ~dut.idle | ((within == 0) & ~given))
    return bench


@pytest.mark.thorough
def test_owner_places():
    verdict = prove(placed(), depth=DEPTH)
    assert verdict.holds, verdict


@pytest.mark.thorough
@pytest.mark.parametrize("wrong, old, new", [
    ({"alone"}, "free.given.valid.eq(issue & final)", "free.given.valid.eq(writer.complete)"),
    ({"alone", "once", "returns"}, "table.open.eq(opens)", "table.open.eq(busy)"),
    ({"idle", "returns"}, "origins.write_en.eq(opens)", "origins.write_en.eq(busy)"),
    ({"alone", "returns"}, "numbers.i.valid.eq(free.taken.valid & swept)",
     "numbers.i.valid.eq(free.taken.valid)"),
    ({"alone", "once"}, "writer.busy.eq(table.busy)", "writer.busy.eq(1)"),
    ({"short"}, "entry.o.ready.eq(advance & ~waits)", "entry.o.ready.eq(advance)"),
], ids=["free-early", "open-in-each-segment", "origin-of-a-segment", "before-the-sweep",
        "for-any-place", "without-a-place"])
def test_broken_owner_places(wrong, old, new):
    verdict = prove(placed((old, new)), depth=DEPTH)
    assert wrong & set(verdict.broken), verdict
