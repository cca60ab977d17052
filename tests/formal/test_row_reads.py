"""Proof of the row reads: each miss is read once, at the address of its row, with a unique tag.

A row's number has two bits here, an offset eight, and there are two tables.
"""

import pytest
from amaranth.hdl import Array, Mux, Signal
from amaranth.lib import data

from rtl.formats import Opcode
from rtl.rings.row_reads import RowReads
from rtl.stream import CreditQueue
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.wires import ShortFIFO
from tests.mutants import variant

ROW, TAG, OFFSET, PLACES, DEPTH = 2, 2, 8, 2, 24
READ = data.StructLayout({"offset": OFFSET, "units": 7, "tag": TAG})
LOOKUP = data.StructLayout({"row": ROW, "table": 1, "landing": TAG,
                            "reserved": READ.size - ROW - 1 - TAG})
OUTGOING = data.StructLayout({"destination": 1, "step": 1, "record": READ.size})
FRAME = data.StructLayout({"opcode": 8, "address": 2})


def reads(*edits: tuple[str, str], soon: bool = False) -> Bench:
    """Return a bench of row reads, with misses of distinct ids in flight, and a DMA engine that
    takes and answers reads at any time."""
    bench = Bench()
    m = bench.m
    m.submodules.dut = dut = variant(
        RowReads, *edits, ("PLACES = 16", f"PLACES = {PLACES}"),
        ('"base": In(64)', '"base": In(2)'),
        ("(_LOW, self.write_data[_UNIT_BITS:])", "(_LOW, self.write_data[4:8])"),
        ("self.write_data[:OFFSET_BITS + _UNIT_BITS - 32]", "self.write_data[:4]"),
        ROW_BITS=ROW, OFFSET_BITS=OFFSET, TABLE_BITS=1, LookupRecord=LOOKUP, RowReadRecord=READ,
        OutgoingRecord=OUTGOING, HostFrame=FRAME,
        CreditQueue=variant(CreditQueue, StreamFIFO=ShortFIFO))(2)
    on, place, size = (bench.constant(bits, name) for bits, name in ((1, "on"), (2, "place"),
                                                                     (3, "size")))
    # All lengths of a row: 1 and 2 units, then 1, 2, 5, 7, 15 and 16 beats of 4.
    beats = Array([1, 1, 1, 2, 5, 7, 15, 16])[size]
    packing = Mux(size == 0, 2, Mux(size == 1, 1, 0))
    units = Array([1, 2, 4, 8, 20, 28, 60, 64])[size]
    settled = Signal(2)
    m.d.sync += settled.eq(Mux(settled == 3, 3, settled + 1))
    m.d.comb += [dut.enable.eq(on), dut.base.eq(place), dut.vector_beats.eq(beats),
                 dut.vector_packing.eq(packing)]

    # Words of descriptors are written before lookups arrive.
    starts, word = bench.free(name="starts"), bench.free(32, "word")
    begun = Signal()
    m.d.sync += begun.eq(begun | (starts & (settled == 3)))
    m.d.comb += [dut.write_en.eq(bench.free(name="write") & ~begun), dut.write_data.eq(word[:12]),
                 dut.write_table.eq(word[31]), dut.write_word.eq(word[28:31])]
    low, high = (Array(Signal(4, name=f"{name}{k}") for k in range(2)) for name in ("low", "high"))
    far = Array(Signal(name=f"far{k}") for k in range(2))  # bases beyond the offsets
    known = Signal(4)  # written words of bases
    with m.If(dut.write_en):
        for number, words in ((3, low), (4, high)):
            with m.If(dut.write_word == number):
                value = (word >> 4)[:4] if number == 3 else word[:4]
                m.d.sync += [words[dut.write_table].eq(value),
                             known.bit_select((number - 3) << 1 | dut.write_table, 1).eq(1)]
                if number == 4:
                    m.d.sync += far[dut.write_table].eq(word[4:12].any())

    lookup = Signal(LOOKUP)
    free = bench.free(LOOKUP.size, "lookup")
    offers, waits, held = bench.free(name="offers"), Signal(), Signal(LOOKUP.size)
    m.d.comb += [
        lookup.eq(Mux(waits, held, free)), dut.i.valid.eq((waits | offers) & begun),
        dut.i.payload.record.eq(lookup)]
    enters, leaves = dut.i.valid & dut.i.ready, bench.sink(dut.o, "reads", dut.o.payload.record)
    m.d.sync += [waits.eq(dut.i.valid & ~dut.i.ready), held.eq(lookup)]
    # A miss has an id that no miss in flight has, until its row arrives, after the read has left.
    taken, asked = Signal(1 << TAG), Signal(1 << TAG)
    come = bench.free(TAG, "come")
    answered = bench.free(name="answers") & asked.bit_select(come, 1)
    tag = data.View(READ, dut.o.payload.record).tag
    for k in range(1 << TAG):
        begins, ends = enters & (lookup.landing == k), answered & (come == k)
        m.d.sync += [taken[k].eq((taken[k] | begins) & ~ends),
                     asked[k].eq((asked[k] | (leaves & on & (tag == k))) & ~ends)]
    bench.assume(~dut.i.valid | ~taken.bit_select(lookup.landing, 1),
                 ~starts | known.all())
    bench.always("one_read_of_a_tag", ~(leaves & on) | (
        taken.bit_select(tag, 1) & ~asked.bit_select(tag, 1)))

    # A position beyond the offsets is the last one.
    wanted, place_of_row = Signal(READ), Signal(OFFSET + 2)
    m.d.comb += [
        place_of_row.eq((high[lookup.table] << 4 | low[lookup.table]) + lookup.row * units),
        wanted.offset.eq(Mux(far[lookup.table] | place_of_row[OFFSET:].any(), -1, place_of_row)),
        wanted.units.eq(units), wanted.tag.eq(lookup.landing)]
    inside = bench.in_order("reads", enters & on, wanted, leaves & on, dut.o.payload.record,
                            PLACES)
    bench.always("off", on | ((dut.o.valid == dut.i.valid) & (dut.i.ready == dut.o.ready) & (
        dut.o.payload == dut.i.payload)))
    came = bench.source(dut.headers)
    went = bench.sink(dut.header_out, "headers")
    into, out = dut.headers.payload, dut.header_out.payload
    bench.always("headers_pass", (came == went) & (dut.headers.valid == dut.header_out.valid))
    bench.always("headers", Mux(on, (out.opcode == Opcode.READ_ROWS) & (out.address == place),
                                out == into))
    bench.always("idle", ~dut.idle | (inside == 0))
    if soon:
        bench.within("leaves_soon", 8, (inside != 0) & dut.o.ready & on, leaves)
        bench.within("enters_soon", 12, dut.i.valid & dut.o.ready, enters)
    return bench


@pytest.mark.slow
def test_row_reads():
    verdict = prove(reads(), seconds=900)
    assert verdict.holds, verdict


@pytest.mark.thorough
def test_it_goes_on():
    verdict = prove(reads(soon=True), depth=DEPTH)
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("old, new", [
    ("self.enable & came & queue.free)", "self.enable & came)"),
    ("Mux(self.enable, queue.free, self.o.ready)", "Mux(self.enable, 1, self.o.ready)"),
    ("Mux(self.enable, queue.o.valid, came)", "Mux(self.enable, queue.o.valid, 0)"),
    ("tag.eq(tags[-1])", "tag.eq(tags[-2])"),
    ("tag.eq(tags[-1])", "tag.eq(lookup.landing)"),
    ("queue.i.valid.eq(valids[-1])", "queue.i.valid.eq(valids[-1] | valids[-2])"),
    ("queue.i.valid.eq(valids[-1])", "queue.i.valid.eq(valids[-1] & (tags[-1] != 0))"),
    ("low.eq(Mux(beats[4], row << 4,", "low.eq(Mux(beats[4], row << 3,"),
    ("whole.eq(low + (high << 2))", "whole.eq(low | (high << 2))"),
    ("Mux(self.vector_packing[1], whole, whole << 1)", "whole"),
    ("(self.write_word == word)", "(self.write_word != word)"),
    ("offset.eq(product + table[:OFFSET_BITS])", "offset.eq(product + bases[:OFFSET_BITS])"),
    ("offset[OFFSET_BITS:].any() | far", "far"),
    ("offset[OFFSET_BITS:].any() | far", "offset[OFFSET_BITS:].any()"),
    ("far.eq(table[-1])", "far.eq(bases[-1])"),
    ("self.idle.eq(queue.idle & ~Cat(valids).any())", "self.idle.eq(queue.idle)"),
    ("queue.o.ready.eq(self.o.ready & self.enable)", "queue.o.ready.eq(0)"),
    ("out.payload.address.eq(self.base)", "out.payload.address.eq(into.payload.address)"),
], ids=["over-full", "lost", "off-lost", "early-tag", "other-tag", "doubled", "tag-lost",
        "sixteen-beats", "carry", "short-rows", "other-words", "early-base", "wraps",
        "far-base", "early-far", "idle-inside",
        "stays", "where"])
def test_broken_row_reads(old, new):
    assert not prove(reads((old, new), soon=True), depth=DEPTH).holds
