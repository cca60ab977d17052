"""Proof of the list ring: it overwrites only consumed slots, and reports only completed writes.

Counts are modulo 2^16 in the hardware and modulo 2^3 here, for rings of one to four slots.
"""

import pytest
from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from rtl.formats import Opcode
from rtl.rings.list_ring import ListRing
from rtl.rings.slot_address import SlotAddress
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.mutants import variant

BITS, DEPTH = 3, 40
INFO = data.StructLayout({"opcode": 8, "destination": 1, "step": 1, "count": 1, "credit": 1,
                          "empty": 1})
FRAME = data.StructLayout(INFO.members | {"address": 3})
SHORT = data.StructLayout({"opcode": 8, "step": 1, "address": 3, "record": BITS})
INDEX = data.StructLayout({"valid": 1, "index": BITS})
RECORD = data.StructLayout({"index": BITS})
PLACE = wiring.Signature({"base": Out(3), "slot_shift": Out(1), "ring_shift": Out(2)})


def ring(*edits: tuple[str, str], soon: bool = False) -> Bench:
    """Return a bench of a ring, a kernel that stores any counts, and memory with a slot's state."""
    bench = Bench()
    m = bench.m
    address = variant(SlotAddress, ("Signal(INDEX_BITS + 31, reset_less=True)", "Signal(3)"),
                      ('"address": Out(64)', '"address": Out(3)'), INDEX_BITS=BITS, Place=PLACE)
    m.submodules.dut = dut = variant(
        ListRing, *edits, ('"index_address": In(64)', '"index_address": In(3)'),
        ("SkidBuffer(16)", "SkidBuffer(1)"),
        ('"lists": Out(stream.Signature(16))', '"lists": Out(stream.Signature(1))'),
        ("self.enable.replicate(64)", "self.enable.replicate(3)"),
        INDEX_BITS=BITS, _HALF=1 << (BITS - 1), FrameInfo=INFO, HostFrame=FRAME, _INDEX=SHORT,
        RingIndex=INDEX, IndexRecord=RECORD, Place=PLACE, SlotAddress=address)()
    shift = Signal(2)
    given = bench.constant(2, "shift")
    m.d.comb += shift.eq(Mux(given == 3, 2, given))
    index, on = bench.free(BITS, "index"), bench.constant(1, "on")
    # The ring is configured some cycles before the first list.
    started = Signal(3)
    m.d.sync += started.eq(Cat(1, started))
    m.d.comb += [
        dut.enable.eq(on), dut.place.ring_shift.eq(shift), dut.index_address.eq(7),
        dut.consumed.valid.eq(bench.free(name="stores")),
        dut.consumed.index.eq(index)]
    info, offered = Signal(INFO), Signal()
    m.d.comb += [info.opcode.eq(Opcode.LOOKUP_REQUESTS), info.count.eq(bench.free(name="count"))]
    # An offered header stays until it is taken.
    waits = Signal()
    m.d.comb += [
        offered.eq((bench.free(name="offers") | waits) & started[2]),
        dut.headers.valid.eq(offered), dut.headers.payload.eq(info)]
    m.d.sync += waits.eq(offered & ~dut.headers.ready)
    ways = dut.header_out, dut.indexes, dut.lists
    m.d.comb += [way.ready.eq(bench.free(name="ready")) for way in ways]
    goes, tells, counted = (way.valid & way.ready for way in ways)
    slots = Signal(BITS)
    m.d.comb += slots.eq(1 << shift)

    # Some or all lists whose counts have left may be answered.
    left, answerable = Signal(BITS), Signal(BITS)
    m.d.comb += dut.answerable.eq(answerable)
    m.d.sync += [left.eq(left + counted),
                 answerable.eq(answerable + (bench.free(name="taken") & (answerable != left)))]

    # The count written for the kernel; the consumed count is what the kernel stores of it.
    header, word = dut.header_out.payload, dut.indexes.payload
    sent, known, consumed = (Signal(BITS, name=n) for n in ("sent", "known", "consumed"))
    # The count takes effect one cycle after its arrival.
    count, came = Signal(BITS), Signal()
    m.d.sync += [sent.eq(sent + (goes & on)), count.eq(index), came.eq(dut.consumed.valid)]
    with m.If(came & ((count - consumed)[:BITS] <= (known - consumed)[:BITS])):
        m.d.sync += consumed.eq(count)

    bench.always("passes", goes == (dut.headers.valid & dut.headers.ready))
    bench.always("as_it_came", ~goes | ((header.opcode == info.opcode)
                                        & (header.count == info.count)))
    bench.always("nothing_overwritten", ~(goes & on) | ((sent - consumed)[:BITS] < slots))
    place = (sent & (slots - 1)) & on.replicate(3)
    bench.always("in_its_slot", ~goes | (header.address == place))
    bench.always("index_goes_to_its_word", ~tells | (
        (word.address == 7) & (word.opcode == Opcode.INDEX)))
    # The content of a list waits in a buffer of two places, in order.
    held, first, second = Signal(2), Signal(), Signal()
    m.d.sync += held.eq(held + (goes & on) - counted)
    with m.If(counted):
        m.d.sync += first.eq(second)
    with m.If(goes & on):
        with m.If(held == counted):
            m.d.sync += first.eq(info.count)
        with m.Else():
            m.d.sync += second.eq(info.count)
    bench.always("counted", (held <= 2) & (~dut.lists.valid | (held != 0)))
    bench.always("counts", ~counted | (dut.lists.payload == first))
    # Lists that may be answered, whose headers left earlier, with at least one new list.
    bench.always("index_true", ~tells | (
        (word.record != known) & ((word.record - known)[:BITS] <= (answerable - known)[:BITS])))
    bench.always("of_what_left", (answerable - known)[:BITS] <= (sent - known)[:BITS])
    before = Signal(SHORT)
    kept = Signal()
    m.d.sync += [before.eq(word), kept.eq(dut.indexes.valid & ~dut.indexes.ready)]
    bench.always("index_stays", ~kept | (dut.indexes.valid & (word == before)))
    bench.always("off", on | ~dut.indexes.valid)
    with m.If(tells):
        m.d.sync += known.eq(word.record)
    if soon:
        bench.within("told_soon", 4, (answerable != known) & dut.indexes.ready, tells)
        bench.within("goes_soon", 12, dut.headers.valid & Cat(way.ready for way in ways).all() & (
            ((sent - consumed)[:BITS] < slots) | ~on), goes)
        bench.within("counted_soon", 3, (held != 0) & dut.lists.ready, counted)
    bench.always("idle", ~dut.idle | ~Cat(way.valid for way in ways).any())
    return bench


@pytest.mark.thorough
def test_list_ring():
    verdict = prove(ring(), seconds=600)
    assert verdict.holds, verdict


@pytest.mark.thorough
def test_it_goes_on():
    verdict = prove(ring(soon=True), depth=DEPTH)
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("edit", [
    ("(written - consumed)[:INDEX_BITS] < slots", "(written - consumed)[:INDEX_BITS] <= slots"),
    ("with m.If(event.valid & (ahead <= most)):", "with m.If(event.valid):"),
    ("most.eq(told - consumed)", "most.eq(written - consumed + 1)"),
    ("with m.Elif(news):", "with m.If(news):"),
    ("send | ~free | ~settled.all() |", "send | ~free |"),
    ("send | ~free | ~settled.all() |", "~free | ~settled.all() |"),
    ("~settled.all() | ~counts.i.ready))", "~settled.all()))"),
    ("record.index.eq(self.answerable)", "record.index.eq(self.answerable + 1)"),
    ("record.index.eq(self.answerable)", "record.index.eq(written)"),
    ("news.eq(ahead)", "news.eq(ahead & ~self.headers.valid)", True),
    ("m.d.sync += [telling.eq(0), told.eq(record.index)]", "m.d.sync += telling.eq(0)", True),
    ("ahead.eq(event.index - consumed)", "ahead.eq(consumed - event.index)"),
    ("slot.address & self.enable", "slot.address & ~self.enable"),
], ids=["one-too-many", "believes", "beyond", "told-over", "old-address", "twice", "uncounted",
        "ahead", "early", "waits", "told-forgotten", "backwards", "address-off"])
def test_broken_list_ring(edit):
    """``True``: the mutant breaks a time bound."""
    old, new, *soon = edit
    assert not prove(ring((old, new), soon=bool(soon)), depth=DEPTH if soon else None).holds
