"""Proof of the bag landing: a vector reaches the place of the bag that waits for it, once.

There are two ids with laps of two bits, and the vector of a bag has one or two beats. Ids are
taken, and vectors of any tag, source and length arrive, at any time; the hold buffer takes every
beat. The solver picks an id. A vector is due if the bag of that id waits for it: it names the id
and its present lap, comes from the node that was asked, at least two cycles after the request, and
its bag has no vector yet. Each beat carries whether its vector names the id, and whether it is due.
"""

from types import SimpleNamespace

import pytest
from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import data

from rtl.bags.landing import BagLanding
from rtl.cache.answer_check import AnswerCheck
from tests.formal.bench import Bench
from tests.formal.plain import plain_ids
from tests.formal.prove import prove
from tests.mutants import variant

IDS, BEATS, LAPS, DEPTH = 2, 2, 2, 24
SIZES = SimpleNamespace(owner_bags=IDS, vector_beats=BEATS, hold_vectors=2)
_TAG = data.StructLayout({"id": 1, "lap": LAPS})
_DATA = data.StructLayout({"named": 1, "due": 1, "place": 1, "bit": 1})
_TAGGED = data.StructLayout({"tag": _TAG.size, "data": _DATA.size, "last": 1, "lost": 1})
_PEER = data.StructLayout(_TAGGED.members | {"source": 1})


def landing(*edits: tuple[str, str], check: tuple[tuple[str, str], ...] = ()) -> Bench:
    """Return a bench with ``edits`` of the landing, or of the answer ``check`` inside it."""
    bench = Bench()
    m = bench.m
    dut = variant(
        BagLanding, *edits, NicConfig=SimpleNamespace, LANDING_BITS=_TAG.size, TAG_BITS=_TAG.size,
        TaggedBeat=_TAGGED, PeerBeat=_PEER, BEAT_INDEX_BITS=1, _DEPTH=4,
        FreeList=plain_ids(bench, IDS),
        AnswerCheck=variant(AnswerCheck, *check, LANDING_BITS=_TAG.size, NODE_BITS=1))(SIZES)
    dut._MustUse__silence = True  # elaborated here, because statements refer to its parts
    m.submodules.dut = dut.elaborate(None)
    ids = m.submodules.dut.submodules.free
    mine = bench.constant(1, "mine")

    # Bags ask at any time.
    tag, node, place, final = (data.View(_TAG, dut.id.payload), *(
        bench.free(name=name) for name in ("node", "place", "final")))
    asks = bench.sink(dut.id, "id", tag.id)
    m.d.comb += [dut.asked.valid.eq(asks), dut.asked.node.eq(node), dut.asked.place.eq(place),
                 dut.asked.final_beat.eq(final)]
    of_mine = asks & (tag.id == mine)
    waits, bag, age, known = Signal(), Signal(data.StructLayout(
        {"node": 1, "place": 1, "lap": LAPS, "final": 1})), Signal(range(3)), Signal()
    m.d.sync += age.eq(Mux(age == 2, 2, age + 1))
    with m.If(of_mine):
        m.d.sync += [waits.eq(1), bag.eq(Cat(node, place, tag.lap, final)), age.eq(1), known.eq(1)]
    bench.always("next_lap", ~(of_mine & known) | (tag.lap == (bag.lap + 1)[:LAPS]))
    bench.always("alone", ~(of_mine & waits))

    # The first beat of a vector decides.
    beat, named = Signal(_PEER), data.View(_TAG, dut.vectors.payload.tag)
    begins, kept, count = Signal(init=1), Signal(_DATA), Signal(range(BEATS + 2))
    vector, now = dut.vectors.payload, Signal(_DATA)
    m.d.comb += [
        beat.eq(bench.free(_PEER.size, "beat")), vector.eq(beat), vector.lost.eq(0),
        vector.data.eq(now), dut.vectors.valid.eq(bench.free(name="vector")),
        now.bit.eq(bench.free(name="bit")),
        now.named.eq(Mux(begins, named.id == mine, kept.named)),
        now.place.eq(Mux(begins, bag.place, kept.place)),
        now.due.eq(Mux(begins, waits & (age == 2) & (named.id == mine) & (
            vector.source == bag.node) & (named.lap == bag.lap), kept.due))]
    comes = dut.vectors.valid & dut.vectors.ready
    whole = comes & vector.last & now.due & (count == bag.final)
    with m.If(comes):
        m.d.sync += [begins.eq(vector.last), kept.eq(now), count.eq(Mux(
            vector.last, 0, Mux(count == BEATS, BEATS, count + 1)))]
    with m.If(whole):
        m.d.sync += waits.eq(0)

    # Only due vectors leave, all of them, in order, for the place of their bag.
    left, out = Signal(), data.View(_DATA, dut.o.payload.data)
    m.d.comb += [dut.o.ready.eq(1), left.eq(dut.o.valid & out.named)]
    bench.always("only_due", ~left | (out.due & (dut.o.payload.tag == out.place)))
    inside = bench.in_order("due", comes & now.due, Cat(now, vector.last), left,
                            Cat(out, dut.o.payload.last), 5)
    bench.within("leaves", 5, inside != 0, left)

    # The id is free once its bag has its vector, and not before.
    bench.always("expected", ids.expected)
    bench.always("held", ~waits | (ids.out >> mine)[0])
    landed = bench.in_order("landed", whole, 0, ids.given.valid & (ids.given.number == mine), 0, 1)
    bench.within("frees", 4, landed != 0, ids.given.valid & (ids.given.number == mine))
    bench.always("idle", ~dut.idle | ((inside == 0) & (landed == 0)))
    return bench


@pytest.mark.thorough
def test_bag_landing():
    verdict = prove(landing(), depth=DEPTH)
    assert verdict.holds, verdict


ONCE = {"only_due", "expected", "landed_none_invented"}
"""A vector that is not due leaves, or its id is free."""


@pytest.mark.parametrize("wrong, old, new", [
    (ONCE, "take.eq(Mux(item.first, known, taking))", "take.eq(known)"),
    (ONCE, "known.eq(check.owed & ~again[0]", "known.eq(check.owed"),
    (ONCE, "& ~again[2]", ""),
    (ONCE, "tag.eq(Mux(middle, begun, vector.tag))", "tag.eq(vector.tag)"),
    (ONCE, "place.eq(self.asked.place)", "place.eq(0)"),
    (ONCE, "& take & (number == final)", "& take"),
    (ONCE, "final.eq(kept.final_beat)", "final.eq(1)"),
    (ONCE, "close.eq(valid & beat.last & take &",
     "close.eq(valid & beat.last &"),
    ({"frees"}, "free.given.valid.eq(self.landed)",
     "free.given.valid.eq(self.landed & self.vectors.valid)"),
], ids=["each-beat", "at-once", "two-later", "tag-of-a-beat", "place", "any-length",
        "one-length", "not-taken", "id-lost"])
def test_broken_bag_landing(wrong, old, new):
    verdict = prove(landing((old, new)), depth=DEPTH)
    assert wrong & set(verdict.broken), verdict


@pytest.mark.parametrize("wrong, old, new", [
    (ONCE, "(found.node == source)", "1"),
    (ONCE, "(found.lap == stages[1][id_bits:])", "1"),
    (ONCE, "& (taken.read_data != stages[1][id_bits])", ""),
    ({"next_lap"}, "question.lap + 1", "question.lap"),
    ({"idle"} | ONCE, "taken.write_addr.eq(Mux(swept, gone[:id_bits], address))",
     "taken.write_addr.eq(Mux(swept, tag[:id_bits], address))"),
], ids=["any-node", "any-lap", "twice", "no-lap", "another-id"])
def test_broken_answer_check(wrong, old, new):
    verdict = prove(landing(check=((old, new),)), depth=DEPTH)
    assert wrong & set(verdict.broken), verdict
