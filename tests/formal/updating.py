"""A row updater with the local cache's side of updates, among free sums, states, cache and host."""

from amaranth.hdl import C, Cat, Mux, Signal, Value
from amaranth.lib import data, wiring

from rtl.formats import OptimizerMode
from tests.formal.bench import Bench
from tests.formal.updating_blocks import COUNT, KEY, NUMBER, STATE, SUM, UpdaterBlocks

__all__ = ["Updating"]

SOON = 4
"""Most cycles from the end of a step, with all of it written, until the cache unfreezes."""


class Updating(UpdaterBlocks):
    """The row updater with free sums, and the local cache with over-approximated tables.

    The updater is real, with ``PLACES`` places and ``beats`` of one bit per vector. The part that
    the local cache adds to an :class:`~rtl.cache.EmbeddingCache` is real too. The tables are
    replaced by their contract: each lookup is answered once, in any order and at any time, with any
    vector, in a slot or not; ``settled`` is 1 only while frozen. The optimizer computes the
    exclusive or of row and gradient, in any time. States arrive at any time, for any number.

    The reduction outputs a key once in a step, with consecutive beats, and no sum while the end of
    a pass is offered. The host reports at any time that any part of its data is written.

    The row of key 0 is followed in each step in which it has a sum. It has the slot ``place``, if
    any; no other row of the step has that slot.

    Members
    -------
    bench, dut, cache, embedding: the bench and the blocks.
    summed, looked, found, held: state of the followed row.
    old, gradient, wrote, sent: values and state of the followed row, by beat.
    saved: its state was sent.
    new: its new vector.
    out: row beats and states that the host has not reported as written.
    asked: lookups without an answer, by number.
    """

    def __init__(self, *edits: tuple[str, str, str], beats: int = 1, adagrad: bool | None = None):
        self.bench = bench = Bench()
        self.beats, self._edits, m = beats, edits, bench.m
        m.submodules.dut = self.dut = dut = self._updater()
        m.submodules.cache = self.cache = self._cache()
        self.adagrad = bench.constant(1, "adagrad") if adagrad is None else C(int(adagrad))
        m.d.comb += [
            dut.mode.eq(Mux(self.adagrad, OptimizerMode.ROWWISE_ADAGRAD, OptimizerMode.SGD)),
            dut.vector_beats.eq(beats), self.cache.vector_beats.eq(beats),
            self.cache.frozen.eq(dut.frozen)]
        for ours, theirs in ((dut.lookups, self.cache.updates), (dut.write, self.cache.write)):
            wiring.connect(m, ours, theirs)
        wiring.connect(m, self.cache.updated, dut.vectors)
        self._sums()
        self._answers()
        self._host()
        self._follow()

    def _sums(self) -> None:
        """Offer sums and ends of passes, as the global reduction does."""
        bench, dut, m = self.bench, self.dut, self.bench.m
        beat, end = dut.sums.payload, dut.flushed.payload
        given, said = bench.free(SUM.size, "sum"), bench.free(name="passed")
        offers, ends, new = (bench.free(name=n) for n in ("offers", "ends", "new_step"))
        offer = data.View(SUM, given)
        self.last_end = ending = Signal()
        stalled, kept, inside, least = Signal(), Signal(SUM), Signal(), Signal(1)
        passed, self.had = Signal(), Signal()
        self.stalled, self.kept, self.within_key = stalled, kept, inside
        key, self.step = Signal(KEY), Signal(1)
        with m.If(stalled):
            m.d.comb += beat.eq(kept)
        with m.Else():
            m.d.comb += [
                beat.eq(offer), beat.step.eq(self.step), beat.key.eq(Mux(inside, key, offer.key)),
                beat.beat.eq(0 if self.beats == 1 else Mux(least, 1, offer.beat)),
                beat.last.eq(1 if self.beats == 1 else offer.last | (least | offer.beat))]
        its = beat.key.as_value() == 0
        end_begins = ends & ~stalled & ~inside
        m.d.comb += [
            dut.flushed.valid.eq(ending | end_begins), end.step.eq(self.step),
            end.passed.eq(Mux(ending, passed, said)),
            dut.sums.valid.eq((stalled | (offers & ~(its & self.had & ~inside)))
                              & ~dut.flushed.valid)]
        taken = dut.sums.valid & dut.sums.ready
        m.d.sync += [
            stalled.eq(dut.sums.valid & ~dut.sums.ready), kept.eq(beat),
            ending.eq(dut.flushed.valid & ~dut.flushed.ready), passed.eq(end.passed)]
        with m.If(taken):
            m.d.sync += [inside.eq(~beat.last), key.eq(beat.key), least.eq(~beat.last),
                         self.had.eq(self.had | its)]
        self.whole = taken & beat.last
        self.mine = taken & its
        self.over = dut.flushed.valid & dut.flushed.ready & ~end.passed
        self.ending = dut.flushed.valid & ~end.passed
        with m.If(self.over):
            m.d.sync += [self.had.eq(0), self.step.eq(new)]

    def _answers(self) -> None:
        """Answer the lookups of updates, each once."""
        bench, dut, m = self.bench, self.dut, self.bench.m
        got = self.embedding.lookups
        self.its_lookup = got.valid & got.payload.meta[-1]
        self.asked, self.place = Signal(1 << NUMBER), Signal(1)
        within, current, following = Signal(), Signal(NUMBER), Signal(1)
        self.within = within, following
        number, answer = Signal(NUMBER), self.answer
        self.number = Signal(NUMBER)  # of the followed row
        its = number == self.number
        m.d.comb += [
            number.eq(Mux(within, current, bench.free(NUMBER, "number"))),
            answer.meta.eq(Cat(number, bench.free(name="whose"))),
            answer.data.eq(bench.free(name="vector")), answer.held.eq(bench.free(name="held")),
            answer.last.eq(1 if self.beats == 1 else following),
            answer.slot.eq(bench.free(name="slot"))]
        waits, whose = self.asked.bit_select(number, 1), answer.meta[-1]
        m.d.comb += self.answers.eq((bench.free(name="answers") & ~whose) | (
            whose & waits & bench.free(name="finds")))
        self.answered = self.answers & whose
        # Once it is found, another row may get its number.
        self.looked, self.found = Signal(), Signal()
        self.its_answer = self.answered & its & self.looked & ~self.found
        bench.always("taken", ~self.answered | dut.vectors.ready)
        coming = Signal(1 << NUMBER)
        with m.If(self.its_lookup & got.ready):
            m.d.comb += coming.eq(1 << got.payload.meta[:NUMBER])
        with m.If(self.answered):
            m.d.sync += [within.eq(~answer.last), current.eq(number), following.eq(~answer.last)]
        m.d.sync += self.asked.eq((self.asked | coming) & ~Mux(
            self.answered & answer.last, Value.cast(1) << number, 0))
        with m.If(~dut.frozen):
            m.d.sync += self.place.eq(bench.free(name="place"))

    def _host(self) -> None:
        """Take rows, states and requests; acknowledge received data."""
        bench, dut, m = self.bench, self.dut, self.bench.m
        self.out, self.acknowledged = Signal(COUNT), Signal(COUNT)
        written = self.acknowledged
        room = self.out < (1 << COUNT) - 2  # of the counts, which have 2^32 values in the hardware
        ready = {name: bench.free(name=name) for name in (
            "requests", "rows", "states", "reports", "done")}
        m.d.comb += [
            dut.rows.ready.eq(ready["rows"] & room),
            dut.state_updates.ready.eq(ready["states"] & room),
            dut.state_requests.ready.eq(ready["requests"]),
            dut.reports.ready.eq(ready["reports"]), dut.done.ready.eq(ready["done"])]
        self.row = dut.rows.valid & dut.rows.ready
        self.saves = dut.state_updates.valid & dut.state_updates.ready
        said = Signal(COUNT)
        m.d.comb += [said.eq(bench.free(COUNT, "acknowledged")), dut.written.eq(written)]
        said = Mux(said > self.out, self.out, said)
        m.d.sync += [written.eq(written + said), self.out.eq(
            self.out + self.row + self.saves - said)]

    def _follow(self) -> None:
        """Track the row of key 0."""
        bench, dut, m, beats = self.bench, self.dut, self.bench.m, self.beats
        got, write, row = dut.lookups, dut.write, dut.rows
        self.looks = got.valid & got.ready & (got.payload.key.as_value() == 0)
        self.summed, self.held, self.saved = (
            Signal(name=n) for n in ("summed", "held", "saved"))
        self.old, self.gradient, self.wrote, self.sent = (
            Signal(beats, name=n) for n in ("old", "gradient", "wrote", "sent"))
        at = Signal(1)
        its_row = self.row & (Cat(row.payload.record.row, row.payload.record.table) == 0)
        self.its_row = its_row
        self.its_write = write.valid & write.ready & (write.payload.slot == self.place)
        landing = data.View(STATE, dut.state_updates.payload.record[:STATE.size]).landing
        self.its_state = self.saves & (landing == self.number)
        answer, beat = self.answer, dut.sums.payload
        if beats == 1:
            at = C(0)
        elif beats == 2:
            with m.If(self.its_answer):
                m.d.sync += at.eq(~answer.last)
        with m.If(self.mine):
            m.d.sync += [self.gradient.bit_select(beat.beat[:beats - 1], 1).eq(beat.data),
                         self.summed.eq(beat.last)]
        with m.If(self.looks):
            m.d.sync += [self.looked.eq(1), self.number.eq(got.payload.meta)]
        with m.If(self.its_answer):
            m.d.sync += [self.old.bit_select(at, 1).eq(answer.data), self.found.eq(answer.last),
                         self.held.eq(answer.held)]
        with m.If(its_row):
            m.d.sync += self.sent.bit_select(row.payload.record.beat[:beats - 1], 1).eq(1)
        with m.If(self.its_write & self.found):
            m.d.sync += self.wrote.bit_select(write.payload.beat[:beats - 1], 1).eq(1)
        with m.If(self.its_state & self.looked):
            m.d.sync += self.saved.eq(1)
        with m.If(self.over):
            m.d.sync += [signal.eq(0) for signal in (
                self.summed, self.looked, self.found, self.held, self.saved, self.old,
                self.gradient, self.wrote, self.sent)]
        # No other row has its slot, and it has no other slot.
        bench.assume(~(self.answered & answer.held & answer.last) | (
            (answer.slot == self.place) == self.its_answer))
        self.new = self.old ^ self.gradient
        self.pending = self.looked & ~(
            self.found & self.sent.all() & (~self.held | self.wrote.all())
            & (self.saved | ~self.adagrad) & (self.out == 0))

    def thaws(self) -> None:
        """State that the cache unfreezes soon after the end of a step, once all is written."""
        bench, dut, m = self.bench, self.dut, self.bench.m
        come, row = self.whole, dut.rows.payload
        self.unsent, self.unwritten, self.unsaved = (
            Signal(4, name=n) for n in ("unsent", "unwritten", "unsaved"))
        m.d.sync += [
            self.unsent.eq(self.unsent + come - (
                self.row & (row.record.beat == self.beats - 1))),
            self.unwritten.eq(self.unwritten + (
                self.beats * (self.answered & self.answer.last & self.answer.held))
                - (dut.write.valid & dut.write.ready)),
            self.unsaved.eq(self.unsaved + (come & self.adagrad) - self.saves)]
        self.all_written = ~Cat(self.unsent, self.unwritten, self.unsaved, self.out).any()
        self.due = self.ending & self.all_written & dut.reports.ready & dut.done.ready
        self.count = bench.within("thaws", SOON, self.due, ~dut.frozen)
