"""A row updater with the local cache's side of updates, between free sums, states, cache, host."""

from types import SimpleNamespace

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.cache.local import LocalCache
from rtl.cache.vectors import row_write_layout, vector_beat_layout
from rtl.formats import OptimizerMode
from rtl.gradient.arrivals import Arrivals
from rtl.gradient.optimizer import RowOptimizer
from rtl.gradient.row_output import RowOutput
from rtl.gradient.row_ring import RowRing
from rtl.gradient.rows_end import RowsEnd
from rtl.gradient.state_unpacker import StateUnpacker
from rtl.gradient.updater import RowUpdater
from rtl.stream import SkidBuffer
from tests.formal.bench import Bench
from tests.formal.mutants import variant
from tests.formal.shown import LOCALS, ShownRam, made_at_once

__all__ = ["Updating"]

PLACES, SLOTS, NUMBER, COUNT = 2, 2, 2, 3
"""Rows in the ring, slots, and bits of a row's number and of a count of what was sent: 16 and 32
in the hardware."""

KEY = data.StructLayout({"row": 1, "table": 1})
LOOKUP = data.StructLayout({"key": KEY, "meta": NUMBER})
REQUEST = data.StructLayout({"row": 1, "table": 1, "landing": NUMBER})
STATE = data.StructLayout({"state": 1, "landing": NUMBER})
OUTGOING = data.StructLayout({"step": 1, "record": max(REQUEST.size, STATE.size)})
FLUSHED = data.StructLayout({"step": 1, "passed": 1})
STEP_RECORD = data.StructLayout({"count": 1, "kind": 2, "level": 1})


def _vector(meta, slots: int = 0) -> data.StructLayout:
    return data.StructLayout({**vector_beat_layout(meta, slots).members, "data": 1})


def _write(slots: int, beats: int) -> data.StructLayout:
    return data.StructLayout({**row_write_layout(slots, beats).members, "data": 1})


def _sum() -> data.StructLayout:
    return data.StructLayout({"step": 1, "key": KEY, "beat": 1, "data": 1, "last": 1})


def _update(id_bits: int) -> data.StructLayout:
    return data.StructLayout({"row": 1, "gradient": 1, "state": 1, "id": id_bits, "last": 1})


def _updated(id_bits: int) -> data.StructLayout:
    return data.StructLayout({"row": 1, "state": 1, "id": id_bits, "last": 1})


class Updating:
    """The row updater behind any sums, and the local cache whose tables may answer anything.

    The updater is the block itself, of ``PLACES`` places and ``beats`` of one bit to a vector, and
    so is what the local cache adds to an :class:`~rtl.cache.EmbeddingCache`. Instead of that there
    is what it promises: each lookup is answered once, in any order and at any time, with any
    vector, held in a slot or not; it has ``settled`` only while frozen. The optimizer computes the
    exclusive or of row and gradient, in any time; states come whenever, for whatever number.

    The reduction gives a key once in a step, beats of a key one after the other, and no sum while
    the end of a pass is offered. The host says at any time that any part of what it got is
    written.

    One row, that of the key 0, is followed in each step that it has a sum in; it has the slot
    ``place``, if any, and no other row of the step has that.

    Members: ``bench``, ``dut``, ``cache``, ``embedding``; what is known of the followed row:
    ``summed``, ``looked``, ``found``, ``held``; ``old``, ``gradient``, ``wrote`` and ``sent`` by
    beat; ``saved``, its state was sent. ``out``: row beats and states that the host has not said to
    be written. ``asked``, lookups by number without an answer. ``calm``: nothing around the block
    is waited for.
    """

    def __init__(self, *edits: tuple[str, str, str], beats: int = 1, adagrad: bool | None = None):
        self.bench = bench = Bench()
        self.beats, self._edits, m = beats, edits, bench.m
        self.eager = Signal()
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

    def _edited(self, block: type, *shown: tuple[str, str], **names) -> type:
        edits = [edit for name, *edit in self._edits if name == block.__name__]
        return made_at_once(variant(block, *edits, *shown, **names))

    def _updater(self) -> RowUpdater:
        """Return the row updater, its blocks narrow."""
        self.config = config = SimpleNamespace(
            update_rows=PLACES, vector_beats=self.beats, local_cache_rows=SLOTS, store_bits=1,
            local_cache_ways=1, misses_in_flight=2, dedupe_in_flight=2, local_cache_sets=2,
            training=1, policy="")
        arrivals = self._edited(
            Arrivals, ("return m\n", f"{LOCALS.format('at')}return m\n"), ROW_NUMBER_BITS=NUMBER, Ram=ShownRam)
        skid = self._edited(SkidBuffer, ("        return m\n\n\ndef", f"        {LOCALS.format('at')}return m\n\n\ndef"))
        row = data.StructLayout({"step": 1, "data": 1, "record": data.StructLayout(
            {"row": 1, "table": 1, "beat": 1})})
        ring = self._edited(
            RowRing, *(
                (f"return {name}", f"{LOCALS.format(at)}return {name}") for name, at in (
                    ("m\n", "at"), ("found\n", "finding"), ("number\n", "landing"),
                    ("left, ", "feeding"))),
            Ram=ShownRam, SkidBuffer=skid, Key=KEY, ROW_NUMBER_BITS=NUMBER, RowLookup=LOOKUP, LookupRecord=REQUEST,
            OutgoingRecord=OUTGOING, StateRecord=STATE, STEP_BITS=1, Arrivals=arrivals,
            vector_beat_layout=_vector, reduced_beat_layout=_sum, update_layout=_update)
        output = self._edited(
            RowOutput, ("        return m\n\n\nclass", f"        {LOCALS.format('at')}return m\n\n\nclass"),
            SkidBuffer=skid, Key=KEY, ROW_NUMBER_BITS=NUMBER, OutgoingPartial=row,
            OutgoingRecord=OUTGOING, StateRecord=STATE, STEP_BITS=1, row_write_layout=_write,
            updated_layout=_updated)
        return self._edited(
            RowUpdater, NicConfig=SimpleNamespace, RowRing=ring, RowOutput=output,
            RowsEnd=self._edited(
                RowsEnd, ("with m.FSM():", "with m.FSM() as fsm:"),
                ("return m\n", f"{LOCALS.format('at')}return m\n"), STEP_BITS=1, OutgoingRecord=OUTGOING, StepRecord=STEP_RECORD,
                Flushed=FLUSHED),
            StateUnpacker=self._states(), RowOptimizer=self._optimizer(),
            RecordBeat=_RECORD_BEAT, ROW_NUMBER_BITS=NUMBER, STEP_BITS=1, reduced_beat_layout=_sum, Flushed=FLUSHED,
            RowLookup=LOOKUP, vector_beat_layout=_vector, row_write_layout=_write,
            OutgoingRecord=OUTGOING, OutgoingPartial=row,
            )(config)

    def _states(self) -> type:
        """Return what stands for the unpacker: any states."""
        bench = self.bench
        valid, state = bench.free(name="state_comes"), bench.free(STATE.size, "state")
        self.state = SimpleNamespace(valid=valid, payload=data.View(STATE, state))

        class States(StateUnpacker):
            def __init__(self, states: int):
                wiring.Component.__init__(self, {
                    "i": In(stream.Signature(_RECORD_BEAT)), "o": Out(stream.Signature(STATE)),
                    "idle": Out(1)})

            def elaborate(self, platform) -> Module:
                m = Module()
                m.d.comb += [self.o.valid.eq(valid), self.o.payload.as_value().eq(state)]
                return m
        return States

    def _optimizer(self) -> type:
        """Return what stands for the optimizer: as many beats as there are, each in any time."""
        goes, takes, owner = (self.bench.free(name="computed"), self.bench.free(name="computes"),
                              self)
        places = PLACES * self.beats

        class Optimizer(RowOptimizer):
            def __init__(self, config, *, id_bits: int):
                owner.optimizer = self
                wiring.Component.__init__(self, {
                    "i": In(stream.Signature(_update(id_bits))),
                    "o": Out(stream.Signature(_updated(id_bits))),
                    "mode": In(OptimizerMode), "dimension": In(1), "learning_rate": In(1),
                    "epsilon": In(1), "idle": Out(1)})

            def elaborate(self, platform) -> Module:
                m = Module()
                shape = self.o.payload.shape()
                held, shown = Signal(places), Signal()
                items = [Signal(shape, name=f"item{k}") for k in range(places + 1)]
                came, left = Signal(), Signal(places)
                beat, new = self.i.payload, Signal(shape)
                owner.computing = held, items
                m.d.comb += [
                    self.i.ready.eq(~held[-1] & (takes | owner.eager)),
                    came.eq(self.i.valid & self.i.ready),
                    self.o.valid.eq(held[0] & (shown | goes | owner.eager)),
                    self.o.payload.eq(items[0]), self.idle.eq(~held.any()),
                    new.row.eq(beat.row ^ beat.gradient), new.state.eq(beat.state),
                    new.id.eq(beat.id), new.last.eq(beat.last),
                    left.eq(Mux(self.o.valid & self.o.ready, held >> 1, held))]
                m.d.sync += [held.eq(Mux(came, Cat(1, left), left)),
                             shown.eq(self.o.valid & ~self.o.ready)]
                for k in range(places):
                    with m.If(came & ~left[k] & (left[k - 1] if k else 1)):
                        m.d.sync += items[k].eq(new)
                    with m.Elif(self.o.valid & self.o.ready):
                        m.d.sync += items[k].eq(items[k + 1])
                return m
        return made_at_once(Optimizer)

    def _cache(self) -> LocalCache:
        """Return the local cache without its tables."""
        owner, bench = self, self.bench
        settled, ready, answer = (
            bench.free(name="settled"), bench.free(name="cache_ready"), Signal(_vector(
                NUMBER + 1, SLOTS)))
        self.settled, self.answer, self.answers = settled, answer, Signal()
        event = data.StructLayout({"valid": 1, "key": KEY})

        class Embedding(wiring.Component):
            def __init__(self, key_bits: int, meta_bits: int, **options):
                super().__init__({
                    "lookups": In(stream.Signature(
                        data.StructLayout({"key": key_bits, "meta": meta_bits}))),
                    "vectors": Out(stream.Signature(_vector(meta_bits, SLOTS))),
                    "misses": Out(stream.Signature(
                        data.StructLayout({"key": key_bits, "id": NUMBER}))),
                    "fills": In(stream.Signature(_FILL)),
                    "write": In(stream.Signature(_write(SLOTS, owner.beats))),
                    "sets": In(2), "enable": In(1), "merge": In(1), "frozen": In(1),
                    "vector_beats": In(range(owner.beats + 1)), "settled": Out(1),
                    "evicted": Out(event), "landed": Out(1), "tap": Out(KEY), "idle": Out(1),
                    "counters": Out(data.StructLayout({"frozen": 1}))})
                owner.embedding = self

            def elaborate(self, platform) -> Module:
                m = Module()
                m.d.comb += [
                    self.settled.eq(self.frozen & (settled | owner.eager)),
                    self.lookups.ready.eq(ready | owner.eager), self.write.ready.eq(
                        owner.write_ready),
                    self.vectors.valid.eq(owner.answers), self.vectors.payload.eq(answer)]
                return m

        self.write_ready = Signal()
        m = self.bench.m
        m.d.comb += self.write_ready.eq(bench.free(name="write_ready") | self.eager)
        cache = self._edited(
            LocalCache, NicConfig=SimpleNamespace, EmbeddingCache=Embedding, Key=KEY,
            FILL_ID_BITS=NUMBER, FillBeat=_FILL, LOCAL_CACHE_COUNTERS=(),
            vector_beat_layout=_vector, row_write_layout=_write,
            tap_layout=lambda key: KEY)(self.config)
        m.d.comb += [cache.lookups.valid.eq(bench.free(name="lookup")),
                     cache.lookups.payload.as_value().eq(bench.free(LOOKUP.size, "of")),
                     cache.vectors.ready.eq(bench.free(name="vectors_ready"))]
        return cache

    def _sums(self) -> None:
        """Offer sums and ends of passes, as the global reduction does."""
        bench, dut, m = self.bench, self.dut, self.bench.m
        beat, end = dut.sums.payload, dut.flushed.payload
        given, said = bench.free(_sum().size, "sum"), bench.free(name="passed")
        offers, ends, new = (bench.free(name=n) for n in ("offers", "ends", "new_step"))
        offer = data.View(_sum(), given)
        self.last_end = ending = Signal()
        stalled, kept, inside, least = Signal(), Signal(_sum()), Signal(), Signal(1)
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
        self.taken = taken
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
        self.number = Signal(NUMBER)  # of the row that is followed
        its, slot = number == self.number, bench.free(name="slot")
        m.d.comb += [
            number.eq(Mux(within, current, bench.free(NUMBER, "number"))),
            answer.meta.eq(Cat(number, bench.free(name="whose"))),
            answer.data.eq(bench.free(name="vector")), answer.held.eq(bench.free(name="held")),
            answer.last.eq(1 if self.beats == 1 else following),
            answer.slot.eq(slot)]
        waits, whose = self.asked.bit_select(number, 1), answer.meta[-1]
        m.d.comb += self.answers.eq((bench.free(name="answers") & ~whose) | (
            whose & waits & bench.free(name="finds")))
        self.answered = self.answers & whose
        # The last row followed keeps its number, but not when another has it.
        self.looked = Signal()
        self.found = Signal()
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
        self.waited = self.asked.any()

    def _host(self) -> None:
        """Take rows, states and requests; acknowledge what came."""
        bench, dut, m = self.bench, self.dut, self.bench.m
        self.out, self.acknowledged = Signal(COUNT), Signal(COUNT)
        written = self.acknowledged
        room = self.out < (1 << COUNT) - 2  # of the counts, of which there are 2^32
        ready = {name: bench.free(name=name) | self.eager for name in (
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
        """Note what becomes of the row of key 0."""
        bench, dut, m, beats = self.bench, self.dut, self.bench.m, self.beats
        got, write, row = dut.lookups, dut.write, dut.rows
        # One item in the embedding cache; it has no queue in front.
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
        # No other row has its slot, and it has no other.
        bench.assume(~(self.answered & answer.held & answer.last) | (
            (answer.slot == self.place) == self.its_answer))
        self.pending = self.looked & ~(
            self.found & self.sent.all() & (~self.held | self.wrote.all())
            & (self.saved | ~self.adagrad) & (self.out == 0))


_RECORD_BEAT = data.StructLayout({"data": 1, "records": 1})
_FILL = data.StructLayout({"id": NUMBER, "data": 1, "last": 1})
