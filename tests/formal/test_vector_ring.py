"""Proof of the vector ring: each filled slot is read once, and reported after that.

Counts are modulo 2^16 in the hardware and modulo 2^2 here, for rings of one slot or two.
"""

from types import SimpleNamespace

import pytest
from amaranth.hdl import Array, Cat, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from rtl.formats import Opcode
from rtl.rings.read_answers import ReadAnswers
from rtl.rings.slot_address import SlotAddress
from rtl.rings.vector_ring import VectorRing
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.wires import ShortFIFO
from tests.mutants import variant

BITS = 2
RECORD = data.StructLayout({"bytes": 8, "tag": BITS})
SHORT = data.StructLayout({"opcode": 8, "step": 1, "address": 2, "record": RECORD.size})
INDEX = data.StructLayout({"valid": 1, "index": BITS})
LENGTH = data.StructLayout({"vectors": 1, "beats": 1})
HEADER = data.StructLayout({"ember": data.StructLayout({
    "opcode": 2, "count": 2, "acknowledge": BITS})})
CODE = SimpleNamespace(READ_DATA=1, GPU_VECTORS=2)
PACKET = data.StructLayout({"item": HEADER.size, "last": 1})
PLACE = wiring.Signature({"base": Out(2), "slot_shift": Out(1), "ring_shift": Out(1)})


def vectors(*edits: tuple[str, str, str], soon: bool = False) -> Bench:
    """Return a bench of a ring, a kernel that stores any counts, and a host that sends any data."""
    bench = Bench()
    m = bench.m

    def edited(block: type, *own: tuple[str, str], **names: object) -> type:
        return variant(block, *own, *(edit[1:] for edit in edits if edit[0] == block.__name__),
                       INDEX_BITS=BITS, **names)

    address = edited(SlotAddress, ("Signal(INDEX_BITS + 31, reset_less=True)", "Signal(2)"),
                     ('"address": Out(64)', '"address": Out(2)'), Place=PLACE)
    answers = edited(ReadAnswers, Length=LENGTH, HeaderBeat=HEADER, PacketBeat=PACKET, _WORDS=1,
                     Opcode=CODE)
    m.submodules.dut = dut = edited(
        VectorRing, ('"index_address": In(64)', '"index_address": In(2)'),
        ('"every": In(8)', '"every": In(2)'), _HALF=1 << (BITS - 1), _RECORD=SHORT,
        PacketBeat=PACKET, Length=LENGTH, RingIndex=INDEX,
        IndexRecord=data.StructLayout({"index": BITS}), ReadRecord=RECORD, Place=PLACE,
        SlotAddress=address, ReadAnswers=answers, StreamFIFO=ShortFIFO)(2, 2)
    shift = bench.constant(1, "shift")
    # The GPU rings the doorbell once the ring is configured.
    started = Signal(2)
    m.d.sync += started.eq(Cat(1, started))
    m.d.comb += [
        dut.place.ring_shift.eq(shift), dut.index_address.eq(3),
        dut.every.eq(bench.constant(2, "every")),
        dut.produced.valid.eq(bench.free(name="stores") & started[1]),
        dut.produced.index.eq(bench.free(BITS, "index"))]
    listed = bench.source(dut.lengths)
    bench.source(dut.i)
    m.d.comb += dut.read.eq(data.View(HEADER, dut.i.payload.item).ember.opcode == CODE.READ_DATA)
    ready, takes = bench.free(name="ready"), bench.free(name="takes")
    m.d.comb += [dut.records.ready.eq(ready), dut.o.ready.eq(takes)]
    head, header = dut.records.valid & ready, dut.records.payload
    record = data.View(RECORD, header.record)
    reads, tells = (head & (header.opcode == code) for code in (Opcode.READ, Opcode.INDEX))
    bench.always("either", ~head | reads | tells)

    # Sent lists and their lengths, slots filled by honest counts, first reads, slots read.
    sent, filled, read, told, out = (Signal(BITS, name=n)
                                     for n in ("sent", "filled", "read", "told", "out"))
    lengths = Array(Signal(LENGTH, name=f"length{k}") for k in range(2))
    came, count, slots = Signal(), Signal(BITS), Signal(BITS)
    m.d.comb += slots.eq(1 << shift)
    m.d.sync += [came.eq(dut.produced.valid), count.eq(dut.produced.index),
                 sent.eq(sent + listed)]
    with m.If(listed):
        m.d.sync += lengths[sent[0]].eq(dut.lengths.payload)
    bench.always("places", ~listed | ((sent - out)[:BITS] < 2))
    with m.If(came & ((count - filled)[:BITS] <= (sent - filled)[:BITS])
              & ((count - filled)[:BITS] <= (out + slots - filled)[:BITS])):
        m.d.sync += filled.eq(count)

    # State of a slot: its read is requested; it failed and must be repeated; it has been read.
    asked, failed, landed = (Signal(2, name=n) for n in ("asked", "failed", "landed"))
    tag, first = record.tag, record.tag == read
    fresh, again = reads & first & ~failed.bit_select(tag[0], 1), reads & failed.bit_select(
        tag[0], 1)
    bench.always("of_a_filled_slot", ~reads | (
        ((tag - out)[:BITS] < (filled - out)[:BITS]) & (fresh | again)))
    bench.always("bounded", ~fresh | ((read - out)[:BITS] < 2))
    bench.always("where", ~reads | (
        (header.address == (tag & (slots - 1)))
        & (record.bytes[6] == lengths[tag[0]].beats)))
    m.d.sync += read.eq(read + fresh)

    # Passed packets: header first, of a requested read, with the slot's length. Other packets pass
    # unchanged.
    item, coming, other = data.View(HEADER, dut.i.payload.item), Signal(), Signal()
    entered, came_by = dut.i.valid & dut.i.ready, Signal()
    left, shown = dut.o.valid & dut.o.ready, data.View(HEADER, dut.o.payload.item)
    m.d.comb += other.eq(Mux(coming, came_by, item.ember.opcode != CODE.READ_DATA))
    with m.If(entered):
        m.d.sync += [coming.eq(~dut.i.payload.last), came_by.eq(other)]
    bench.always("others_pass", ~other | (
        (dut.o.valid == dut.i.valid) & (dut.i.ready == dut.o.ready)
        & (~dut.o.valid | (dut.o.payload == dut.i.payload))))
    bench.always("what_leaves_came", ~left | (
        entered & (dut.o.payload.last == dut.i.payload.last)))
    begins, number = left & ~coming & ~other, item.ember.acknowledge
    last, landing, place = Signal(BITS), Signal(), Signal(BITS)
    with m.If(begins):
        m.d.sync += last.eq(number)
    # A slot has been read in the cycle after its last beat.
    m.d.sync += [landing.eq(left & ~other & dut.o.payload.last),
                 place.eq(Mux(coming, last, number))]
    bench.always("as_it_was_read", ~(left & coming) | (dut.o.payload == dut.i.payload))
    good = asked.bit_select(number[0], 1) & ((number - out)[:BITS] < (read - out)[:BITS])
    bench.always("asked_for", ~begins | (
        good & (shown.ember.count == lengths[number[0]].vectors)
        & (shown.ember.opcode == CODE.GPU_VECTORS) & (shown.ember.acknowledge == number)))
    # A header at the input is dropped for its length, if its read was requested.
    dropped = Signal()
    m.d.comb += dropped.eq(entered & ~coming & ~left)
    wanted = asked.bit_select(item.ember.acknowledge[0], 1) & (
        (item.ember.acknowledge - out)[:BITS] < (read - out)[:BITS])
    fits = item.ember.count == lengths[item.ember.acknowledge[0]].beats << 1
    # The verdict is some cycles old: requested all the time, or ever, since the header arrived. A
    # short packet is counted in the cycle after the header was dropped.
    never, ever, shorts, short = Signal(), Signal(), Signal(), Signal()
    with m.If(dut.i.valid & ~entered & ~coming):
        m.d.sync += [never.eq(never | ~wanted), ever.eq(ever | wanted)]
    with m.Else():
        m.d.sync += [never.eq(0), ever.eq(0)]
    was = {name: Signal(name=f"was_{name}") for name in ("dropped", "never", "ever", "fits")}
    failing = Signal()
    m.d.sync += [was["dropped"].eq(dropped), was["never"].eq(never), was["ever"].eq(ever | wanted),
                 was["fits"].eq(fits), failing.eq(item.ember.acknowledge[0]),
                 shorts.eq(dut.counters.short_data[0])]
    m.d.comb += short.eq(was["dropped"] & (shorts != dut.counters.short_data[0]))
    bench.always("drops_the_right_ones",
                 ~was["dropped"] | was["never"] | (short & ~was["fits"]))
    bench.always("again_if_asked", ~short | was["ever"])
    bench.always("passes_the_right_ones", ~begins | (wanted & fits))
    for k in range(2):
        mine = reads & (tag[0] == k)
        fails = short & (failing == k)
        with m.If(mine):
            m.d.sync += [asked[k].eq(1), failed[k].eq(0)]
        with m.Elif((begins & (number[0] == k)) | fails):
            m.d.sync += [asked[k].eq(0), failed[k].eq(fails)]
        with m.If(landing & (place[0] == k)):
            m.d.sync += landed[k].eq(1)
        with m.Elif((out[0] == k) & landed[k]):
            m.d.sync += landed[k].eq(0)
    with m.If(landed.bit_select(out[0], 1)):
        m.d.sync += out.eq(out + 1)

    # The word: a count of slots that were read, in order, and at least one new slot.
    value = header.record[:BITS]
    bench.always("index", ~tells | ((value != told) & (header.address == 3) & (
        (value - told)[:BITS] <= (out - told)[:BITS])))
    with m.If(tells):
        m.d.sync += told.eq(value)
    bench.always("idle", ~dut.idle | ~Cat(dut.records.valid, dut.o.valid).any())
    if soon:
        waits = (read != filled) & ((read - out)[:BITS] < 2)
        bench.within("reads_soon", 20, waits & ready, fresh)
        bench.within("again_soon", 20, failed.any() & ready, again)
        bench.within("told_soon", 20, (read == out) & (filled == read) & (told != out) & ready,
                     tells)
        bench.within("taken", 4, dut.i.valid & takes, entered)
    return bench


@pytest.mark.thorough
def test_vector_ring():
    verdict = prove(vectors(), seconds=900)
    assert verdict.holds, verdict


@pytest.mark.thorough
def test_it_goes_on():
    verdict = prove(vectors(soon=True), depth=30)
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("block, old, new", [
    ("VectorRing", "(ahead <= room) & (ahead <= known)", "ahead <= known"),
    ("VectorRing", "(ahead <= room) & (ahead <= known)", "ahead <= room"),
    ("VectorRing", "answers.asked.eq(inside & here)", "answers.asked.eq(here)"),
    ("VectorRing", "answers.asked.eq(inside & here)", "answers.asked.eq(inside)"),
    ("VectorRing", "self._lists - 1)", "self._lists)"),
    ("VectorRing", "again.i.valid.eq(answers.short)", "again.i.valid.eq(0)"),
    ("VectorRing", "with m.If(calm):", "with m.If(1):"),
    ("ReadAnswers", "with m.If(asked & fits):", "with m.If(asked):"),
    ("ReadAnswers", "with m.If(come & beat.last):", "with m.If(come):"),
    ("ReadAnswers", "self.o.valid.eq(come & ~self.read)", "self.o.valid.eq(come)"),
    ("ReadAnswers", "with m.If(come & self.o.ready & beat.last):", "with m.If(come & beat.last):"),
    ("ReadAnswers", "with m.Elif(come & self.o.ready & ~beat.last):",
     "with m.Elif(come & self.o.ready):"),
    ("VectorRing", "index.index.eq(out)]", "index.index.eq(read)]"),
], ids=["over-the-ring", "over-the-lists", "old-number", "doubled", "length-lost",
        "not-again", "in-haste", "any-length", "rest-passes", "as-it-came", "ends-early",
        "never-ends", "told-unread"])
def test_broken_vector_ring(block, old, new):
    assert not prove(vectors((block, old, new), soon=True), depth=44).holds
