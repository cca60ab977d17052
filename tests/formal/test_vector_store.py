"""Proof of the vector store, without bound: each read gets the content of its row at its issue.

There are two slots and two landing rows, with vectors of one beat of one bit. Writes, hits and
waiters occur at any time, for rows with updates and without. The queue behind the RAMs has three
places and is otherwise free (``test_credit_queue``); updates arrive without their skid buffer.
:func:`~tests.formal.plain.plain_store` has the same behaviour without delay.
"""

import pytest
from amaranth.hdl import C, Cat, Mux, Signal
from amaranth.lib import data

from rtl.cache.vectors import VectorStore, vector_beat_layout
from tests.formal.bench import Bench
from tests.formal.plain import Rest, plain_queue
from tests.formal.prove import prove
from tests.formal.wires import Wires
from tests.mutants import variant

ROWS, IDS, PLACES, AHEAD = 2, 2, 3, 1
META = data.StructLayout({"value": 1, "known": 1, "item": 1})


def stored(*edits: tuple[str, str], updated: bool = False) -> Bench:
    """Return a bench in which the meta of a read contains the content of its row in that cycle."""
    bench = Bench()
    m = bench.m
    queue, _, _ = plain_queue(vector_beat_layout(META, ROWS if updated else 0), PLACES)
    m.submodules.dut = dut = variant(
        VectorStore, *edits, CreditQueue=queue, HITS_AHEAD=AHEAD, SkidBuffer=Wires)(
            META, rows=ROWS, in_flight=IDS, vector_beats=1, style="uram", store_bits=1,
            updated=updated)
    write, hit, waiter = dut.write, dut.hits, dut.waiters
    m.d.comb += [
        dut.vector_beats.eq(1), write.valid.eq(bench.free(name="write")),
        write.stored.eq(write.valid & bench.free(name="stored")),
        write.slot.eq(bench.free(range(ROWS), "slot")), write.id.eq(bench.free(range(IDS), "id")),
        write.data.eq(bench.free(name="data")),
        hit.payload.slot.eq(bench.free(range(ROWS), "hit_slot")),
        waiter.payload.id.eq(bench.free(range(IDS), "waiter_id")),
        waiter.payload.last.eq(bench.free(name="last"))]
    if updated:
        row = dut.updates.payload
        m.d.comb += [dut.updates.valid.eq(bench.free(name="update")),
                     row.slot.eq(bench.free(range(ROWS), "updated_slot")),
                     row.data.eq(bench.free(name="updated_data"))]
        bench.always("takes", dut.updates.ready == ~write.stored)
    rest = Rest(m, dut, ROWS, IDS)
    for of, found in ((hit, rest.of(hit.payload.slot, landed=False)),
                      (waiter, rest.of(waiter.payload.id, landed=True))):
        m.d.comb += [of.valid.eq(bench.free(name="offer")),
                     of.payload.meta.eq(Cat(*found, bench.free(name="item")))]
    hits, waits = hit.valid & hit.ready, waiter.valid & waiter.ready
    out = dut.vectors.payload
    # The slot of a hit is shown with its vector.
    place = Cat(hits, hits & hit.payload.slot) if updated else C(0, 0)
    shown = Cat(out.held, out.held & out.slot) if updated else C(0, 0)
    left = bench.sink(dut.vectors, "vectors", Cat(out.data[0], out.meta, shown))
    bench.always("one", ~(hits & waits))
    bench.always("value", ~dut.vectors.valid | ~out.meta.known | (out.data[0] == out.meta.value))
    inside = bench.in_order(
        "reads", hits | waits, Cat(Mux(hits, hit.payload.meta, waiter.payload.meta), place),
        left, Cat(out.meta, shown), PLACES)
    bench.always("last", ~dut.vectors.valid | out.last)
    bench.always("released", (dut.released.valid == (waits & waiter.payload.last))
                 & (~waits | (dut.released.number == waiter.payload.id)))
    # Reads advance while vectors are taken, and a waiter waits for at most that many hits.
    bench.within("goes", 5, (hit.valid | waiter.valid) & dut.vectors.ready, hits | waits)
    passed, waited = Signal(range(AHEAD + 2)), Signal()
    m.d.sync += waited.eq(waiter.valid & ~waits)
    with m.If(waits):
        m.d.sync += passed.eq(0)
    with m.Elif(hits & waiter.valid):
        m.d.sync += passed.eq(passed + 1)
    bench.always("in_turn", passed <= AHEAD)
    bench.always("idle", ~dut.idle | ((inside == 0) & ~hit.valid & ~waiter.valid))
    return bench


@pytest.mark.parametrize("updated", [False, True])
def test_vector_store(updated):
    verdict = prove(stored(updated=updated))
    assert verdict.holds, verdict


@pytest.mark.few(1, "thorough")
@pytest.mark.few(3)
@pytest.mark.parametrize("wrong, old, new", [
    ("value", "Mux(read.waiter, landing.read_data, slots.read_data)", "landing.read_data"),
    ("value", 'slot_pins["write_en"].eq(write.stored)', 'slot_pins["write_en"].eq(write.valid)'),
    ("value", "stages[1].eq(stages[0]), stages[2].eq(stages[1])",
     "stages[1].eq(stages[0]), stages[2].eq(stages[0])"),
    ("reads_none_invented", "self.hits.ready.eq(queue.free & final",
     "self.hits.ready.eq(queue.free & final & (passed != 0)"),
    ("reads_in_order", "queue.i.valid.eq(under_way[2])", "queue.i.valid.eq(under_way[1])"),
    ("in_turn", "due.eq(passed == HITS_AHEAD - 1)", "due.eq(0)"),
    ("released", "self.waiters.ready & self.waiters.payload.last", "self.waiters.ready"),
    ("reads_bounded", "queue.reserve.eq(issue)", "queue.reserve.eq(issue | self.waiters.valid)"),
], ids=["landing-row", "stored-without-a-row", "a-stage-early", "hit-twice", "too-early",
        "never-its-turn", "released-too-early", "place-for-none"])
def test_broken_vector_store(wrong, old, new):
    verdict = prove(stored((old, new)), depth=16)
    assert not verdict.holds, verdict
    assert set(verdict.broken) & {wrong, "value"}, verdict


@pytest.mark.few(2)
@pytest.mark.parametrize("wrong, old, new", [
    ("value", '[pins["write_en"].eq(updates.o.valid)', '[pins["write_en"].eq(0)'),
    ("takes", "updates.o.ready.eq(~self.write.stored)", "updates.o.ready.eq(1)"),
    ("value", "with m.If(~self.write.stored):", "with m.If(1):"),
    ("reads_in_order", "item.held.eq(~read.waiter)", "item.held.eq(1)"),
    ("reads_in_order", "stages[0].slot.eq(self.hits.payload.slot)",
     "stages[0].slot.eq(self.updates.payload.slot)"),
], ids=["not-updated", "update-lost", "fill-lost", "a-waiter-is-held", "slot-of-another"])
def test_broken_updated_store(wrong, old, new):
    verdict = prove(stored((old, new), updated=True), depth=16)
    assert wrong in verdict.broken, verdict
