"""Completion writer: writes one word per step to GPU memory when all its results are there."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from rtl.formats import (
    CREDIT_BITS,
    RECORD_BITS,
    STEP_BITS,
    CompletionRecord,
    FlushRecord,
    HostFrame,
    Opcode,
    RawBeat,
    Refused,
    Status,
    StepOpenRecord,
)
from rtl.gateable import Gateable
from rtl.memory import Ram
from rtl.monitor.counters import CounterLayout, count
from rtl.rings.layouts import INDEX_BITS, AnsweredStep, FlushedSlot, RingIndex, StepError
from rtl.rings.record_writer import RecordWriter
from rtl.rings.step_table import MOST_SAMPLES, STEP_TABLE_COUNTERS, StepTable, check_slots
from rtl.stream import SkidBuffer, StreamFIFO

__all__ = ["COMPLETION_COUNTERS", "CompletionWriter"]

COMPLETION_COUNTERS = CounterLayout(
    "opened", "refused", "refusals_lost", "completed", "flushes", "bad_flushed", "bad_freed",
    *STEP_TABLE_COUNTERS.members)

_HALF = 1 << (INDEX_BITS - 1)
_LAP_BITS, _REFUSALS = 8, 8


class CompletionWriter(Gateable, wiring.Component):
    """Write a word to a ring in GPU memory when all results of a step have left for it.

    The host opens a step with the number of samples that this NIC will answer, by a result or an
    error each. The opening of step number n assigns slot n mod ``slots`` of the ring. Words are
    written once each, in the order in which steps finish (:class:`~rtl.rings.StepTable`). A word
    has the status of the step, 0 or its first error. A consumer waits for it by a cyclic comparison
    (:data:`rtl.formats.CompletionRecord`).

    With ``flush``, a FLUSH packet follows the results, and the word follows its answer: GPUs before
    Hopper may make writes visible in another order. At most one flush is in flight. A late step
    completes with status TIMEOUT, without waiting for a flush.

    The consumer returns slots in the order of opening, as a cumulative count modulo 2^16. A count
    beyond the written words is ignored, so no slot is overwritten before its return; an older count
    has no effect.

    An opening is rejected with an error if no slot is free (status CREDIT), a step of the same
    number is not complete (STEP), or the step has more than 2^24 samples (LENGTH). ``opens`` never
    waits for these errors: at most eight wait to be sent, and further errors are lost.

    Parameters: ``slots`` of the ring, ``config.completion_slots``.

    Ports
    -----
    opens: stream of :data:`rtl.formats.StepOpenRecord`; waits only for ``answered``.
    answered, error: events :data:`~rtl.rings.layouts.AnsweredStep` and
        :data:`~rtl.rings.layouts.StepError`, in the order in which packets leave for the host;
        ``answered`` is 0 in one of any two cycles, like headers.
    flushed: event :data:`~rtl.rings.layouts.FlushedSlot`, FLUSHED packets.
    freed: event :data:`~rtl.rings.layouts.RingIndex`, slots returned so far.
    flush: use flushes; base: address of the ring, a multiple of its 4 * ``slots`` bytes.
    time, timeout: a step is late ``timeout`` cycles after its opening, 0 is never; ``time`` may
        jump while ``idle``.
    refused: stream of :data:`rtl.formats.Refused`.
    headers, payload: streams of :data:`rtl.formats.HostFrame` and :data:`rtl.formats.RawBeat`.
    credit: credit of the headers.
    counters: steps ``opened``, ``refused`` and ``completed``; ``refusals_lost``, rejections without
        an error; ``flushes``; ``bad_flushed``, answers without a flush; ``bad_freed``, counts
        beyond the written words; and the counters of :class:`~rtl.rings.StepTable`.
    idle: no movement until an input moves.

    Raises ``TypeError`` or ``ValueError`` for ``slots`` that are not a power of two, 2 to 128.
    """

    LATENCY = {
        ("last answer", "header of the word"): 10,
        ("last answer", "header of the flush"): 10,
        ("answer to the flush", "header of the word"): 4,
    }
    RATE = ("1 opening in 4 cycles; 1 answered packet in 2; 1 word in 4 cycles, "
            "or with flushes in 8 and a flush's round trip")

    def __init__(self, slots: int = 16):
        check_slots(slots)
        self._slots = slots
        super().__init__({
            "opens": In(stream.Signature(StepOpenRecord)), "answered": In(AnsweredStep),
            "error": In(StepError), "flushed": In(FlushedSlot), "freed": In(RingIndex),
            "flush": In(1), "base": In(64), "time": In(32), "timeout": In(32),
            "refused": Out(stream.Signature(Refused)),
            "headers": Out(stream.Signature(HostFrame)),
            "payload": Out(stream.Signature(RawBeat)), "credit": In(CREDIT_BITS),
            "counters": Out(COMPLETION_COUNTERS), "idle": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.table = table = StepTable(self._slots)
        m.d.comb += [table.answered.eq(self.answered), table.error.eq(self.error),
                     table.time.eq(self.time), table.timeout.eq(self.timeout)]
        m.submodules.laps = laps = Ram(_LAP_BITS, self._slots, latency=0)
        # Cumulative counts, in the order of opening.
        opened, freed = Signal(INDEX_BITS), Signal(INDEX_BITS)
        opening = self._open(m, table, laps, opened, freed)
        freeing = self._free(m, table, opened, freed)
        writing = self._write(m, table, laps)
        for name in STEP_TABLE_COUNTERS.members:
            m.d.comb += self.counters[name].eq(table.counters[name])
        m.d.comb += self.idle.eq(table.idle & ~(opening | freeing | writing))
        return m

    def _open(self, m: Module, table: StepTable, laps: Ram, opened: Signal, freed: Signal):
        """Open or reject steps; return whether any is inside."""
        m.submodules.opens = source = SkidBuffer(StepOpenRecord)
        m.submodules.refusals = refusals = StreamFIFO(Refused, _REFUSALS)
        wiring.connect(m, wiring.flipped(self.opens), source.i)
        wiring.connect(m, refusals.o, wiring.flipped(self.refused))
        record, bits = source.o.payload, ceil_log2(self._slots)
        step, long = Signal(STEP_BITS, reset_less=True), Signal(reset_less=True)
        room, lost = Signal(), Signal()
        m.d.comb += [
            table.open.valid.eq(source.o.valid), source.o.ready.eq(table.taken),
            table.open.slot.eq(opened[:bits]), table.open.step.eq(record.step),
            table.open.samples.eq(record.samples),
            laps.write_en.eq(table.accepted), laps.write_addr.eq(opened[:bits]),
            laps.write_data.eq((opened >> bits) + 1), laps.read_addr.eq(table.slot),
            refusals.i.valid.eq(table.refused), refusals.i.payload.step.eq(step),
            refusals.i.payload.status.eq(Mux(long, Status.LENGTH, Mux(
                table.doubled, Status.STEP, Status.CREDIT))),
            lost.eq(table.refused & ~refusals.i.ready),
        ]
        with m.If(table.taken):
            m.d.sync += [step.eq(record.step), long.eq(record.samples > MOST_SAMPLES)]
        # ``room`` is a cycle late; the next opening is evaluated later than that.
        m.d.sync += [opened.eq(opened + table.accepted),
                     room.eq((opened - freed)[:INDEX_BITS] < self._slots)]
        m.d.comb += table.room.eq(room & ~long)
        count(m, self.counters, opened=table.accepted, refused=table.refused, refusals_lost=lost)
        return ~source.idle | ~refusals.idle

    def _free(self, m: Module, table: StepTable, opened: Signal, freed: Signal):
        """Free returned slots; return whether anything moves."""
        event, written, moves = Signal(RingIndex), Signal(INDEX_BITS), Signal()
        ahead, most, bad = Signal(INDEX_BITS), Signal(INDEX_BITS), Signal()
        m.d.comb += [
            # Count written slots, up to the first unwritten slot in the order of opening.
            moves.eq((written != opened)
                     & ~table.held.bit_select(written[:ceil_log2(self._slots)], 1)),
            ahead.eq(event.index - freed), most.eq(written - freed),
        ]
        m.d.sync += [event.eq(self.freed), written.eq(written + moves),
                     bad.eq(event.valid & (ahead > most) & (ahead < _HALF))]
        with m.If(event.valid & (ahead <= most)):
            m.d.sync += freed.eq(event.index)
        count(m, self.counters, bad_freed=bad)
        return event.valid | moves | bad

    def _write(self, m: Module, table: StepTable, laps: Ram):
        """Flush, and write the words; return whether anything moves."""
        m.submodules.writer = writer = RecordWriter(RECORD_BITS)
        wiring.connect(m, writer.headers, wiring.flipped(self.headers))
        wiring.connect(m, writer.payload, wiring.flipped(self.payload))
        slot, tag, event = Signal(range(self._slots)), Signal(16), Signal(FlushedSlot)
        flush, word, packet = Signal(FlushRecord), Signal(CompletionRecord), writer.i.payload
        step, lap, status = (Signal(shape, name=name, reset_less=True) for name, shape in (
            ("step", STEP_BITS), ("lap", _LAP_BITS), ("status", 8)))
        late, good, awaited, asked, moving = (
            Signal(), Signal(), Signal(), Signal(), Signal(init=1))
        seen, matched = Signal(), Signal()  # the event, a cycle later
        m.d.comb += [
            table.slot.eq(slot), writer.credit.eq(self.credit),
            flush.slot.eq(slot), flush.tag.eq(tag), word.status.eq(status), word.step.eq(step),
            word.lap.eq(lap), word.slot.eq(slot),
            packet.step.eq(step), packet.address.eq(self.base | (slot << 2)),
            good.eq(matched & awaited),
        ]
        m.d.sync += [
            event.eq(self.flushed), seen.eq(event.valid),
            matched.eq(event.valid & awaited & (event.slot == slot) & (event.tag == tag)),
            late.eq(table.late), step.eq(table.step),
            lap.eq(laps.read_data),
        ]
        with m.FSM(name="writer"):
            with m.State("WAIT"):
                m.d.comb += [table.finished.ready.eq(1), moving.eq(0)]
                m.d.sync += slot.eq(table.finished.payload)
                with m.If(table.finished.valid):
                    m.next = "LOAD"
            with m.State("LOAD"):
                m.next = "DECIDE"
            with m.State("DECIDE"):
                m.d.sync += status.eq(Mux(late, Status.TIMEOUT, table.status))
                m.next = "WORD"
                with m.If(self.flush & ~late):
                    m.d.sync += tag.eq(tag + 1)
                    m.next = "FLUSH"
            with m.State("FLUSH"):
                m.d.comb += [asked.eq(1), writer.i.valid.eq(1), packet.opcode.eq(Opcode.FLUSH),
                             packet.record.eq(flush)]
                with m.If(writer.i.ready):
                    m.next = "LEAVE"
            with m.State("LEAVE"):  # no answer precedes its request
                with m.If(writer.idle):
                    m.next = "FLUSHED"
            with m.State("FLUSHED"):
                m.d.comb += [awaited.eq(1), moving.eq(good | late)]
                with m.If(good):
                    m.next = "WORD"
                with m.Elif(late):
                    m.d.sync += status.eq(Status.TIMEOUT)
                    m.next = "WORD"
            with m.State("WORD"):
                m.d.comb += [writer.i.valid.eq(1), packet.opcode.eq(Opcode.COMPLETION),
                             packet.record.eq(word), table.release.eq(writer.i.ready)]
                with m.If(writer.i.ready):
                    m.next = "WAIT"
        count(m, self.counters, completed=table.release, flushes=asked & writer.i.ready,
              bad_flushed=seen & ~good)
        return moving | event.valid | seen | ~writer.idle
