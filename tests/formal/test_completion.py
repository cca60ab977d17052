"""Proof of the completion writer: one word for each finished step, in a free slot.

The step table is replaced by an over-approximation; a separate proof covers it. Counts are modulo
2^2.
"""

import pytest
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import Component

from rtl.formats import Opcode, Status
from rtl.rings.completion import CompletionWriter
from rtl.rings.record_writer import RecordWriter
from rtl.rings.step_table import StepTable
from tests.formal.bench import Bench
from tests.formal.prove import prove
from tests.formal.wires import ShortFIFO, Wires
from tests.mutants import variant

BITS, SLOTS, TAG, DEPTH = 2, 2, 2, 28
FRAME = data.StructLayout({"opcode": 8, "step": 1, "count": 1, "credit": 1, "address": 64})
WORD = data.StructLayout({"status": 4, "step": 1, "lap": 1, "slot": 1})
FLUSH = data.StructLayout({"slot": 1, "tag": TAG})
BEAT = data.StructLayout({"data": WORD.size, "last": 1})
SHORT = data.StructLayout({"opcode": 8, "step": 1, "address": 64, "record": WORD.size})


class Table:
    """Over-approximation of the step table: its ports, with any allowed behaviour."""

    def __init__(self, bench: Bench):
        self.bench = bench
        self.accepted, self.taken, self.shown, self.late = (
            Signal(name=n) for n in ("accepted", "taken", "shown", "late"))
        self.held, self.given, self.slot, self.opened_slot, self.release, self.asked = (
            Signal(SLOTS), Signal(SLOTS), Signal(1), Signal(1), Signal(), Signal(1))
        self.status = Signal(4)

    def block(self) -> type:
        bench, table = self.bench, self
        take, refuse, late_, status, show, which = (
            bench.free(n, name) for n, name in (
                (1, "take"), (1, "refuse"), (SLOTS, "late"), (3, "status"), (1, "show"),
                (1, "which")))

        class AnyTable(Component):
            def __init__(self, slots: int):
                alike = StepTable(slots)
                alike._MustUse__silence = True  # type: ignore[attr-defined]
                super().__init__(alike.signature)

            def elaborate(self, platform) -> Module:
                m = Module()
                under_way, room, slot = Signal(3), Signal(), Signal(1)
                late = Signal(SLOTS)
                m.d.comb += [
                    self.taken.eq(self.open.valid & take & ~under_way.any()),
                    self.accepted.eq(under_way[2] & room), self.refused.eq(under_way[2] & ~room),
                    self.held.eq(table.held), self.late.eq(late.bit_select(self.slot, 1)),
                    self.status.eq(status), self.idle.eq(0),
                    self.finished.valid.eq(table.shown), self.finished.payload.eq(table.slot),
                ]
                with m.If(self.taken):
                    m.d.sync += slot.eq(self.open.slot)
                m.d.sync += [under_way.eq((under_way << 1) | self.taken),
                             room.eq(self.room & ~refuse)]
                opens = Cat(self.accepted & (slot == k) for k in range(SLOTS))
                closes = Cat(self.release & (self.slot == k) for k in range(SLOTS))
                gives = Cat(table.shown & self.finished.ready & (table.slot == k)
                            for k in range(SLOTS))
                m.d.sync += [
                    table.held.eq((table.held | opens) & ~closes),
                    table.given.eq((table.given | gives) & ~closes),
                    late.eq((late | (late_ & table.held)) & ~opens),
                ]
                # A held slot that was not output is shown until it is taken.
                with m.If(~table.shown):
                    m.d.sync += [table.slot.eq(which), table.shown.eq(
                        show & (table.held & ~table.given).bit_select(which, 1))]
                with m.Elif(self.finished.ready):
                    m.d.sync += table.shown.eq(0)
                m.d.comb += [
                    table.accepted.eq(self.accepted), table.opened_slot.eq(slot),
                    table.taken.eq(gives.any()), table.release.eq(self.release),
                    table.asked.eq(self.slot), table.late.eq(self.late),
                    table.status.eq(self.status)]
                return m

        return AnyTable


def writer(*edits: tuple[str, str], soon: bool = False) -> Bench:
    """Return a bench of the writer, a dishonest host and a consumer, with free counts."""
    bench = Bench()
    m = bench.m
    table = Table(bench)
    names = dict(STEP_BITS=1, CREDIT_BITS=1, HostFrame=FRAME, RawBeat=BEAT)
    records = variant(RecordWriter, SkidBuffer=Wires, ShortPacket=lambda bits: SHORT, **names)
    m.submodules.dut = dut = variant(
        CompletionWriter, *edits, ("slot, tag, event = Signal(range(self._slots)), Signal(16)",
                                   f"slot, tag, event = Signal(range(self._slots)), Signal({TAG})"),
        INDEX_BITS=BITS, _HALF=1 << (BITS - 1), _LAP_BITS=1, CompletionRecord=WORD,
        FlushRecord=FLUSH, RECORD_BITS=WORD.size, StepTable=table.block(), SkidBuffer=Wires,
        StreamFIFO=ShortFIFO, RecordWriter=records,
        RingIndex=data.StructLayout({"valid": 1, "index": BITS}),
        FlushedSlot=data.StructLayout({"valid": 1, "slot": 1, "tag": TAG}), **names)(SLOTS)
    flush = bench.constant(1, "flush")
    m.d.comb += [
        dut.flush.eq(flush), dut.opens.valid.eq(bench.free(name="open")),
        dut.freed.eq(bench.free(BITS + 1, "freed")),
        dut.flushed.eq(bench.free(TAG + 2, "flushed")), dut.refused.ready.eq(1)]
    ready = bench.free(name="ready")
    m.d.comb += [dut.headers.ready.eq(ready), dut.payload.ready.eq(ready)]
    head, header = dut.headers.valid & ready, dut.headers.payload
    word, asked = (data.View(shape, dut.payload.payload.data[:shape.size])
                   for shape in (WORD, FLUSH))
    writes, flushes = (head & (header.opcode == code)
                       for code in (Opcode.COMPLETION, Opcode.FLUSH))
    bench.always("both", (dut.headers.valid == dut.payload.valid) & (~head | writes | flushes))

    # Slots are opened in turn, each free: written, and returned since, by honest counts.
    opened, returned, in_order = Signal(BITS), Signal(BITS), Signal(BITS)
    numbers = [Signal(BITS, name=f"number{k}") for k in range(SLOTS)]
    came, count = Signal(), Signal(BITS)
    m.d.sync += [came.eq(dut.freed.valid), count.eq(dut.freed.index),
                 opened.eq(opened + table.accepted)]
    with m.If((in_order != opened) & ~table.held.bit_select(in_order[0], 1)):
        m.d.sync += in_order.eq(in_order + 1)
    with m.If(came & ((count - returned)[:BITS] <= (in_order - returned)[:BITS])):
        m.d.sync += returned.eq(count)
    for k, number in enumerate(numbers):
        with m.If(table.accepted & (table.opened_slot == k)):
            m.d.sync += number.eq(opened)
    bench.always("free", ~table.accepted | (
        ((opened - returned)[:BITS] < SLOTS) & ~table.held.bit_select(table.opened_slot, 1)
        & (table.opened_slot == opened[0])))

    # A finished slot is in flight until its word is written, once.
    under_way, slot, was_late = Signal(), Signal(1), Signal()
    with m.If(table.taken):
        m.d.sync += [under_way.eq(1), slot.eq(table.slot)]
    with m.Elif(writes):
        m.d.sync += under_way.eq(0)
    bench.always("one_at_a_time", ~(table.taken & under_way) | writes)
    bench.always("its_word", ~writes | (under_way & (word.slot == slot)
                                        & (header.address[:3] == slot << 2)))
    bench.always("released", (table.release == writes) & (~writes | (table.asked == slot)))
    bench.always("lap", ~writes | (word.lap == (Mux(slot, numbers[1], numbers[0])[1] + 1)[0]))

    # A flush leaves before the word and is answered, or the step is late.
    sent, answered, tag = Signal(), Signal(), Signal(TAG)
    right = dut.flushed.valid & (dut.flushed.slot == slot) & (dut.flushed.tag == tag)
    with m.If(table.taken):
        m.d.sync += [sent.eq(0), answered.eq(0), was_late.eq(0)]
    with m.Else():
        with m.If(flushes):
            m.d.sync += [sent.eq(1), tag.eq(asked.tag)]
        with m.If(right & sent):
            m.d.sync += answered.eq(1)
        with m.If(table.late & (table.asked == slot)):
            m.d.sync += was_late.eq(1)
    tagged = Signal()
    with m.If(flushes):
        m.d.sync += tagged.eq(1)
    # An answer to an earlier flush of this slot does not answer this flush.
    bench.always("new_tag", ~flushes | ~tagged | (asked.tag != tag))
    bench.always("flush_of_it", ~flushes | (under_way & ~sent & flush & (asked.slot == slot)))
    bench.always("flushed", ~(writes & flush & (word.status != Status.TIMEOUT)) | answered)
    bench.always("late", ~(writes & (word.status == Status.TIMEOUT)) | was_late)
    if soon:
        bench.within("written", 5, under_way & ready & ~flush, writes)
        bench.within("written_then", 4, under_way & ready & answered, writes)
        bench.within("written_late", 12, under_way & ready & was_late, writes)
        bench.within("given_back", 3, (returned != in_order) & came & (
            count == in_order), returned == in_order)
    return bench


def test_completion_writer():
    verdict = prove(writer(), seconds=900)
    assert verdict.holds, verdict


def test_it_goes_on():
    verdict = prove(writer(soon=True), depth=DEPTH)
    assert verdict.holds, verdict


@pytest.mark.few(3)
@pytest.mark.parametrize("edit", [
    ("[:INDEX_BITS] < self._slots", "[:INDEX_BITS] <= self._slots"),
    ("with m.If(event.valid & (ahead <= most)):", "with m.If(event.valid):"),
    ("& ~table.held.bit_select(written[:ceil_log2(self._slots)], 1)", ""),
    ("(opened >> bits) + 1", "opened >> bits"),
    ("with m.If(self.flush & ~late):", "with m.If(0):"),
    ("& (event.tag == tag)", ""),
    ("matched.eq(event.valid & awaited &", "matched.eq(event.valid &"),
    ("Mux(late, Status.TIMEOUT, table.status)", "Mux(0, 0, table.status)"),
    ("table.release.eq(writer.i.ready)", "table.release.eq(0)"),
    ("with m.Elif(late):", "with m.Elif(0):", True),
    ("m.d.sync += tag.eq(tag + 1)", "m.d.sync += tag.eq(tag)"),
], ids=["one-too-many", "believes", "not-written", "same-lap", "no-flush", "any-tag",
        "early-answer", "in-time", "not-released", "waits-for-ever", "same-tag"])
def test_broken_completion_writer(edit):
    """``True``: the mutant breaks a time bound."""
    old, new, *soon = edit
    assert not prove(writer((old, new), soon=bool(soon)), depth=DEPTH if soon else None).holds
