"""Proof of the list ring: it overwrites nothing that was not consumed, and tells of nothing early.

Counts are modulo 2^16 in the hardware and modulo 2^2 here, of rings of one slot or two.
"""

import pytest
from amaranth.hdl import Cat, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from rtl.formats import Opcode
from rtl.rings.list_ring import ListRing
from rtl.rings.slot_address import SlotAddress
from tests.formal.bench import Bench
from tests.formal.mutants import variant
from tests.formal.prove import prove
from tests.formal.wires import Wires

BITS, DEPTH = 2, 32
INFO = data.StructLayout({"opcode": 8, "destination": 1, "step": 1, "count": 1, "credit": 1,
                          "empty": 1})
FRAME = data.StructLayout(INFO.members | {"address": 2})
BEAT = data.StructLayout({"data": BITS, "last": 1})
INDEX = data.StructLayout({"valid": 1, "index": BITS})
RECORD = data.StructLayout({"index": BITS})
PLACE = wiring.Signature({"base": Out(2), "slot_shift": Out(1), "ring_shift": Out(1)})


def ring(*edits: tuple[str, str], soon: bool = False) -> Bench:
    """Return a bench of a ring, a kernel that stores any counts, and memory with a slot's state."""
    bench = Bench()
    m = bench.m
    address = variant(SlotAddress, ("Signal(INDEX_BITS + 31, reset_less=True)", "Signal(2)"),
                      ('"address": Out(64)', '"address": Out(2)'), INDEX_BITS=BITS, Place=PLACE)
    m.submodules.dut = dut = variant(
        ListRing, *edits, ('"index_address": In(64)', '"index_address": In(2)'),
        ('"most": In(8)', '"most": In(2)'), ("since, enough = Signal(_SETTLED), Signal(8)",
                                             "since, enough = Signal(_SETTLED), Signal(2)"),
        INDEX_BITS=BITS, _HALF=1 << (BITS - 1), CREDIT_BITS=1, FrameInfo=INFO, HostFrame=FRAME,
        RawBeat=BEAT, RingIndex=INDEX, IndexRecord=RECORD, Place=PLACE, SlotAddress=address,
        SkidBuffer=Wires)()
    shift = bench.constant(1, "shift")
    index = bench.free(BITS, "index")
    m.d.comb += [
        dut.place.ring_shift.eq(shift), dut.index_address.eq(3), dut.most.eq(
            bench.constant(2, "most")),
        dut.consumed.valid.eq(bench.free(name="stores")), dut.consumed.index.eq(index)]
    info, beat = Signal(INFO), Signal(BEAT)
    m.d.comb += [info.opcode.eq(Opcode.LOOKUP_REQUESTS), info.count.eq(bench.free(name="count")),
                 beat.last.eq(bench.free(name="last"))]
    bench.source(dut.headers, info)
    beats_in = bench.source(dut.payload, beat)
    # The places of the buffers at the outputs, any of which may be full: what enters them leaves.
    ways = dut.header_out, dut.payload_out, dut.lists
    m.d.comb += [way.ready.eq(bench.free(name="ready")) for way in ways]
    head, body, counted = (way.valid & way.ready for way in ways)
    slots = Signal(BITS)
    m.d.comb += slots.eq(1 << shift)

    # What the kernel was told of; what it has truly consumed is what it stores of that.
    header, word = dut.header_out.payload, dut.payload_out.payload.data
    tells, goes = head & (header.opcode == Opcode.INDEX), head & (
        header.opcode == Opcode.LOOKUP_REQUESTS)
    sent, known, consumed = (Signal(BITS, name=n) for n in ("sent", "known", "consumed"))
    # The count is looked at a cycle after it came.
    count, came = Signal(BITS), Signal()
    m.d.sync += [sent.eq(sent + goes), count.eq(index), came.eq(dut.consumed.valid)]
    with m.If(came & ((count - consumed)[:BITS] <= (known - consumed)[:BITS])):
        m.d.sync += consumed.eq(count)

    bench.always("nothing_overwritten", ~goes | ((sent - consumed)[:BITS] < slots))
    bench.always("in_its_slot", ~goes | (header.address == (sent & (slots - 1))))
    bench.always("index_goes_to_its_word", ~tells | (header.address == 3))
    bench.always("one_or_the_other", ~head | tells | goes)
    bench.always("counted", counted == goes)

    # A packet's payload is out before the next header is, but for that of an index, in its cycle.
    inside = Signal()
    with m.If(goes):
        m.d.sync += inside.eq(1)
    with m.Elif(body & dut.payload_out.payload.last):
        m.d.sync += inside.eq(0)
    bench.always("data_first", ~(tells | goes) | ~inside)
    bench.always("index_true", ~tells | (body & (word == sent) & dut.payload_out.payload.last))
    bench.always("no_beat_between", ~body | inside | tells)
    bench.always("beats_pass", ~beats_in | (body & inside))
    with m.If(tells):
        m.d.sync += known.eq(sent)
    bench.always("news", ~tells | (sent != known))
    if soon:
        ready = dut.header_out.ready & dut.payload_out.ready & dut.lists.ready
        # With no other packet, or a full ring, the index follows soon; a packet, where it may.
        bench.within("told_soon", 6, (sent != known) & ~inside & ready & (
            ~dut.headers.valid | ((sent - consumed)[:BITS] >= slots)), tells)
        bench.within("goes_soon", 10, dut.headers.valid & ~inside & ready & (
            (sent - consumed)[:BITS] < slots), goes)
    bench.always("idle", ~dut.idle | ~Cat(dut.header_out.valid, dut.payload_out.valid).any())
    return bench


def test_list_ring():
    verdict = prove(ring(), seconds=600)
    assert verdict.holds, verdict


def test_it_goes_on():
    verdict = prove(ring(soon=True), depth=DEPTH)
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("edit", [
    ("(written - consumed)[:INDEX_BITS] < slots", "(written - consumed)[:INDEX_BITS] <= slots"),
    ("with m.If(event.valid & (ahead <= most)):", "with m.If(event.valid):"),
    ("most.eq(told - consumed)", "most.eq(written - consumed + 1)"),
    ("tell.eq(some & ~body &", "tell.eq(some &"),
    ("free & settled.all() & ~body & ~tell", "free & ~body & ~tell"),
    ("record.index.eq(written)", "record.index.eq(written + 1)"),
    ("(enough | ~fits)", "enough", True),
    ("m.d.sync += [told.eq(written), since.eq(0)", "m.d.sync += [since.eq(0)", True),
    ("ahead.eq(event.index - consumed)", "ahead.eq(consumed - event.index)"),
], ids=["one-too-many", "believes", "beyond", "in-the-middle", "old-address", "ahead", "never-told",
        "told-forgotten", "backwards"])
def test_broken_list_ring(edit):
    """``True``: what breaks is how soon something happens."""
    old, new, *soon = edit
    assert not prove(ring((old, new), soon=bool(soon)), depth=DEPTH if soon else None).holds
